# SPDX-License-Identifier: Apache-2.0
# Headers, libraries, the program, the CMake package (components sqlite, postgres, mariadb, http, toml, and the sinks) and the pkg-config files.
if(NOT POSTRIDER_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)

# pkg-config files find the prefix from where they lie, so an installed tree can be moved.
set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
set(pc_libdir "${CMAKE_INSTALL_FULL_LIBDIR}")
set(pc_includedir "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" AND NOT IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig"
             OUTPUT_VARIABLE up)
  set(pc_prefix "\${pcfiledir}/${up}")
  set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/postrider")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.hpp")

# postrider_install(<target> <component> REQUIRES pkg-config modules... LIBS flags... CFLAGS flags...)
function(postrider_install target component)
  cmake_parse_arguments(ARG "" "DESCRIPTION" "REQUIRES;LIBS;CFLAGS" ${ARGN})
  install(TARGETS ${target} EXPORT postrider-${component}
          LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT postrider-${component} NAMESPACE postrider:: DESTINATION "${package_dir}"
          FILE postrider-${component}-targets.cmake)
  list(JOIN ARG_REQUIRES ", " requires)
  list(JOIN ARG_LIBS " " libs)
  list(JOIN ARG_CFLAGS " " cflags)
  # What an archive needs, its user must link; what a shared library needs, it brings.
  set(libs_private "")
  if(BUILD_SHARED_LIBS)
    set(libs_private "${libs}")
    set(libs "")
  endif()
  set(name ${target})
  set(description "${ARG_DESCRIPTION}")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/postrider.pc.in" "${PROJECT_BINARY_DIR}/generated/${target}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/generated/${target}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endfunction()

postrider_install(postrider core DESCRIPTION "${PROJECT_DESCRIPTION}"
  REQUIRES sqlite3 LIBS -lboost_json -lboost_container -pthread CFLAGS -pthread)
if(POSTRIDER_HAVE_POSTGRES)
  postrider_install(postrider-postgres postgres DESCRIPTION "Postrider on PostgreSQL"
    REQUIRES "postrider = ${PROJECT_VERSION}" libpq CFLAGS -DPOSTRIDER_WITH_POSTGRES=1)
endif()
if(POSTRIDER_HAVE_MARIADB)
  postrider_install(postrider-mariadb mariadb DESCRIPTION "Postrider on MariaDB and MySQL"
    REQUIRES "postrider = ${PROJECT_VERSION}" libmariadb LIBS -lboost_url CFLAGS -DPOSTRIDER_WITH_MARIADB=1)
endif()
if(POSTRIDER_HAVE_PROGRAM)
  install(TARGETS postrider-program RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT program)
  if(NOT CMAKE_CROSSCOMPILING)
    # Its manual and its completions, said by the program itself when it is installed.
    install(CODE "
      set(PROGRAM \"$<TARGET_FILE:postrider-program>\")
      set(WORK \"${PROJECT_BINARY_DIR}/packaging\")
      set(SHARE \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")
      set(MAN \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}\")
      include(\"${PROJECT_SOURCE_DIR}/cmake/install_self_description.cmake\")" COMPONENT program)
  endif()
endif()
if(POSTRIDER_HAVE_HTTP)
  postrider_install(postrider-http http DESCRIPTION "Postrider's client for the Event Log API"
    REQUIRES "postrider = ${PROJECT_VERSION}" libcurl zlib)
endif()
if(POSTRIDER_HAVE_TOML)
  postrider_install(postrider-toml toml DESCRIPTION "Postrider's options from TOML files"
    REQUIRES "postrider = ${PROJECT_VERSION}")
endif()

set(sink_modules "") # for the package: what a sink's users need to link an archive
foreach(sink IN LISTS POSTRIDER_SINKS)
  string(TOUPPER ${sink} upper)
  if(POSTRIDER_HAVE_${upper})
    postrider_install(postrider-${sink} ${sink} DESCRIPTION "Postrider's sink ${sink}"
      REQUIRES "postrider = ${PROJECT_VERSION}" ${POSTRIDER_SINK_${sink}} LIBS -lboost_url)
  endif()
  list(JOIN POSTRIDER_SINK_${sink} " " modules)
  string(APPEND sink_modules "set(postrider_modules_${sink} ${modules})\n")
endforeach()
list(JOIN POSTRIDER_SINKS "|" sink_pattern)
list(JOIN POSTRIDER_SINKS ", " sink_names)

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/postrider-config.cmake.in"
  "${PROJECT_BINARY_DIR}/generated/postrider-config.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/generated/postrider-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/generated/postrider-config.cmake"
              "${PROJECT_BINARY_DIR}/generated/postrider-config-version.cmake" DESTINATION "${package_dir}")
