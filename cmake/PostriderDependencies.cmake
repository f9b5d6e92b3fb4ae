# SPDX-License-Identifier: Apache-2.0
# Finds what is needed, and says in one line each what is built and what is left out.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(SQLite3 3.37 REQUIRED) # STRICT tables
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(PkgConfig QUIET)
find_path(POSTRIDER_XXHASH_INCLUDE xxhash.h REQUIRED DOC "Where xxhash.h is: apt install libxxhash-dev") # header only
mark_as_advanced(POSTRIDER_XXHASH_INCLUDE)

message(STATUS "postrider: sqlite     yes (sqlite ${SQLite3_VERSION})")

# For what is optional, a backend or the program: sets POSTRIDER_HAVE_<NAME> from the user's choice (AUTO, ON, OFF) and from
# what was found.
function(postrider_optional name choice found detail hint)
  string(TOUPPER "${name}" upper)
  string(LENGTH "${name}" length)
  math(EXPR pad "10 - ${length}")
  string(REPEAT " " ${pad} pad)
  set(have FALSE)
  if(choice STREQUAL "AUTO" OR choice)
    if(found)
      set(have TRUE)
      message(STATUS "postrider: ${name}${pad} yes (${detail})")
    elseif(choice STREQUAL "AUTO")
      message(STATUS "postrider: ${name}${pad} no (${hint})")
    else()
      message(FATAL_ERROR "postrider: POSTRIDER_${upper}=${choice}, but ${hint}")
    endif()
  else()
    message(STATUS "postrider: ${name}${pad} no (POSTRIDER_${upper}=${choice})")
  endif()
  set(POSTRIDER_HAVE_${upper} ${have} PARENT_SCOPE)
endfunction()

if(POSTRIDER_POSTGRES)
  find_package(PostgreSQL QUIET)
endif()
postrider_optional(postgres "${POSTRIDER_POSTGRES}" "${PostgreSQL_FOUND}"
  "libpq ${PostgreSQL_VERSION_STRING}" "libpq not found: apt install libpq-dev")

if(POSTRIDER_MARIADB AND PKG_CONFIG_FOUND)
  pkg_check_modules(LIBMARIADB QUIET IMPORTED_TARGET libmariadb)
  find_package(Boost 1.81 QUIET COMPONENTS url)
endif()
if(LIBMARIADB_FOUND AND TARGET Boost::url)
  set(POSTRIDER_FOUND_MARIADB TRUE)
endif()
postrider_optional(mariadb "${POSTRIDER_MARIADB}" "${POSTRIDER_FOUND_MARIADB}" "libmariadb ${LIBMARIADB_VERSION}"
  "libmariadb or Boost.URL not found: apt install libmariadb-dev libboost-url1.81-dev pkg-config")

if(POSTRIDER_TOML)
  find_path(POSTRIDER_TOML_INCLUDE toml++/toml.h DOC "Where toml++/toml.h is: apt install libtomlplusplus-dev") # header only
  mark_as_advanced(POSTRIDER_TOML_INCLUDE)
endif()
postrider_optional(toml "${POSTRIDER_TOML}" "${POSTRIDER_TOML_INCLUDE}" "toml++, headers only"
  "toml++ not found: apt install libtomlplusplus-dev")

if(POSTRIDER_PROGRAM)
  find_package(Boost 1.81 QUIET COMPONENTS url)
  find_path(POSTRIDER_BEAST_DIR boost/beast/http.hpp HINTS ${Boost_INCLUDE_DIRS})
  mark_as_advanced(POSTRIDER_BEAST_DIR)
  find_package(CLI11 QUIET)
  find_package(ZLIB QUIET)
  find_package(OpenSSL QUIET)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(POSTRIDER_PROGRAM_LIBS QUIET IMPORTED_TARGET prometheus-cpp-core libsystemd)
  endif()
endif()
if(TARGET Boost::url AND POSTRIDER_BEAST_DIR AND CLI11_FOUND AND ZLIB_FOUND AND OPENSSL_FOUND AND POSTRIDER_PROGRAM_LIBS_FOUND
   AND POSTRIDER_HAVE_TOML)
  set(POSTRIDER_FOUND_PROGRAM TRUE)
endif()
postrider_optional(program "${POSTRIDER_PROGRAM}" "${POSTRIDER_FOUND_PROGRAM}" "CLI11 ${CLI11_VERSION}"
  "not all of its libraries were found: apt install libboost-url1.81-dev libboost1.81-dev libcli11-dev zlib1g-dev libssl-dev libtomlplusplus-dev prometheus-cpp-dev libsystemd-dev pkg-config")

if(POSTRIDER_DASHBOARD AND POSTRIDER_HAVE_PROGRAM)
  find_program(POSTRIDER_NODE node)
  find_program(POSTRIDER_NPM npm)
  mark_as_advanced(POSTRIDER_NODE POSTRIDER_NPM)
endif()
if(POSTRIDER_NODE AND POSTRIDER_NPM AND POSTRIDER_HAVE_PROGRAM)
  set(POSTRIDER_FOUND_DASHBOARD TRUE)
endif()
postrider_optional(dashboard "${POSTRIDER_DASHBOARD}" "${POSTRIDER_FOUND_DASHBOARD}" "built by node"
  "node, npm or the program are missing: apt install nodejs npm")

# Events are made by one thread and let go by another, which glibc's arenas make both wait for.
if(POSTRIDER_SANITIZE)
  set(POSTRIDER_JEMALLOC OFF) # they have an allocator of their own
endif()
if(POSTRIDER_JEMALLOC AND POSTRIDER_HAVE_PROGRAM AND PKG_CONFIG_FOUND)
  pkg_check_modules(POSTRIDER_JEMALLOC_LIB QUIET IMPORTED_TARGET jemalloc)
endif()
postrider_optional(jemalloc "${POSTRIDER_JEMALLOC}" "${POSTRIDER_JEMALLOC_LIB_FOUND}" "jemalloc ${POSTRIDER_JEMALLOC_LIB_VERSION}"
  "jemalloc or the program is missing: apt install libjemalloc-dev")

if(POSTRIDER_HTTP)
  find_package(CURL 7.85 QUIET)
  find_package(ZLIB QUIET)
endif()
if(CURL_FOUND AND ZLIB_FOUND)
  set(POSTRIDER_FOUND_HTTP TRUE)
endif()
postrider_optional(http "${POSTRIDER_HTTP}" "${POSTRIDER_FOUND_HTTP}" "libcurl ${CURL_VERSION_STRING}"
  "libcurl or zlib not found: apt install libcurl4-openssl-dev zlib1g-dev")

foreach(sink IN LISTS POSTRIDER_SINKS)
  string(TOUPPER ${sink} upper)
  list(JOIN POSTRIDER_SINK_${sink} " and " modules)
  if(POSTRIDER_${upper} AND PKG_CONFIG_FOUND)
    pkg_check_modules(POSTRIDER_SINK_${upper} QUIET IMPORTED_TARGET ${POSTRIDER_SINK_${sink}})
    if(TARGET PkgConfig::POSTRIDER_SINK_${upper})
      # hiredis.pc has it. It concerns 32-bit programs alone, and with it the tests' precompiled header does not fit.
      get_target_property(options PkgConfig::POSTRIDER_SINK_${upper} INTERFACE_COMPILE_OPTIONS)
      if(options)
        list(REMOVE_ITEM options -D_FILE_OFFSET_BITS=64)
        set_target_properties(PkgConfig::POSTRIDER_SINK_${upper} PROPERTIES INTERFACE_COMPILE_OPTIONS "${options}")
      endif()
    endif()
  endif()
  postrider_optional(${sink} "${POSTRIDER_${upper}}" "${POSTRIDER_SINK_${upper}_FOUND}" "${modules}"
    "${modules} not found: apt install pkg-config ${POSTRIDER_SINK_PACKAGE_${sink}}")
endforeach()

# Every backend that this build has, in the order in which tests name them.
set(POSTRIDER_BACKENDS sqlite)
set(POSTRIDER_BACKEND_LIBRARIES postrider::postrider)
foreach(backend IN ITEMS postgres mariadb)
  string(TOUPPER ${backend} upper)
  if(POSTRIDER_HAVE_${upper})
    list(APPEND POSTRIDER_BACKENDS ${backend})
    list(APPEND POSTRIDER_BACKEND_LIBRARIES postrider::${backend})
  endif()
endforeach()
