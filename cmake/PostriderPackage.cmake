# SPDX-License-Identifier: Apache-2.0
# The Debian package of the program: `make deb`, or cpack -G DEB in a build folder. It holds the install component
# `program` (the program, its units, documents, alert rules and dashboard) and the configuration in /etc.
if(NOT POSTRIDER_INSTALL OR NOT POSTRIDER_HAVE_PROGRAM)
  return()
endif()

set(packaging "${PROJECT_SOURCE_DIR}/packaging")
set(share "${CMAKE_INSTALL_DATADIR}/postrider")

# postrider_unit(<file> <instance text> <config name> <state folder>)
# Written when it is installed, because it names the program's place, and CPack has another prefix than others.
function(postrider_unit file text config state)
  install(CODE "
    set(BINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
    set(DOCDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}\")
    set(INSTANCE_TEXT \"${text}\")
    set(INSTANCE_FILE \"${config}\")
    set(STATE \"${state}\")
    set(SYSCALLS \"@system-service\") # its at sign would be taken for a variable
    configure_file(\"${packaging}/systemd/postrider.service.in\" \"${PROJECT_BINARY_DIR}/packaging/${file}\" @ONLY)
    file(INSTALL \"${PROJECT_BINARY_DIR}/packaging/${file}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/systemd/system\")"
    COMPONENT program)
endfunction()
postrider_unit(postrider.service "" postrider postrider)
postrider_unit(postrider@.service " (%i)" %i postrider/%i)
install(FILES "${packaging}/systemd/postrider.sysusers" DESTINATION lib/sysusers.d RENAME postrider.conf
        COMPONENT program)

file(GLOB documents CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/*.md" "${PROJECT_SOURCE_DIR}/docs/*.yaml")
install(FILES ${documents} "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
              "${packaging}/deb/copyright" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT program)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs/screenshots" "${PROJECT_SOURCE_DIR}/docs/decisions"
        DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT program)
install(FILES "${packaging}/prometheus/alerts.yml" DESTINATION "${share}/prometheus" COMPONENT program)
install(FILES "${packaging}/grafana/postrider.json" DESTINATION "${share}/grafana" COMPONENT program)
install(FILES "${packaging}/postrider.toml" DESTINATION "${share}" COMPONENT program)
# For CPack alone: no other installation may touch somebody's configuration.
install(FILES "${packaging}/postrider.toml" DESTINATION /etc/postrider COMPONENT configuration EXCLUDE_FROM_ALL)

set(CPACK_PACKAGE_NAME postrider)
set(CPACK_PACKAGE_VENDOR Postrider)
set(CPACK_PACKAGE_CONTACT "The Postrider authors <postrider@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "durable events, on the database you already have")
set(CPACK_PACKAGE_DESCRIPTION "Transactional outbox, work queue, event store with relay, and event log for
SQLite, PostgreSQL and MariaDB: one daemon with REST API, metrics and command
line. Applications in any language publish with SQL or HTTP.")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL program configuration)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION database)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS systemd)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "prometheus, postgresql, mariadb-server")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    "${packaging}/deb/postinst;${packaging}/deb/prerm;${packaging}/deb/postrm;${packaging}/deb/conffiles")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
