# SPDX-License-Identifier: Apache-2.0
# What a user can choose, and what every target of ours is compiled with.

set(POSTRIDER_POSTGRES AUTO CACHE STRING "Build postrider::postgres: AUTO (when libpq is found), ON, OFF")
set(POSTRIDER_MARIADB AUTO CACHE STRING "Build postrider::mariadb: AUTO (when libmariadb is found), ON, OFF")
if(PROJECT_IS_TOP_LEVEL) # who takes us into a tree of his own wants the library
  set(program_by_default AUTO)
else()
  set(program_by_default OFF)
endif()
set(POSTRIDER_PROGRAM ${program_by_default} CACHE STRING
    "Build the program postrider: AUTO (when Beast, Boost.URL and CLI11 are found), ON, OFF")
set(POSTRIDER_HTTP AUTO CACHE STRING "Build postrider::http, the logger's client: AUTO (when libcurl and zlib are found), ON, OFF")
set(POSTRIDER_TOML AUTO CACHE STRING "Build postrider::toml, options from files: AUTO (when toml++ is found), ON, OFF")
set_property(CACHE POSTRIDER_POSTGRES POSTRIDER_MARIADB POSTRIDER_PROGRAM POSTRIDER_HTTP POSTRIDER_TOML PROPERTY STRINGS AUTO ON OFF)

# The sinks that need a library of somebody else's, each a component: its pkg-config modules and Debian packages.
set(POSTRIDER_SINKS kafka nats rabbitmq redis webhook)
set(POSTRIDER_SINK_kafka rdkafka)
set(POSTRIDER_SINK_nats libnats)
set(POSTRIDER_SINK_rabbitmq librabbitmq openssl)
set(POSTRIDER_SINK_redis hiredis)
set(POSTRIDER_SINK_webhook libcurl libcrypto)
set(POSTRIDER_SINK_PACKAGE_kafka librdkafka-dev)
set(POSTRIDER_SINK_PACKAGE_nats libnats-dev)
set(POSTRIDER_SINK_PACKAGE_rabbitmq "librabbitmq-dev libssl-dev")
set(POSTRIDER_SINK_PACKAGE_redis libhiredis-dev)
set(POSTRIDER_SINK_PACKAGE_webhook "libcurl4-openssl-dev libssl-dev")
foreach(sink IN LISTS POSTRIDER_SINKS)
  string(TOUPPER ${sink} upper)
  set(POSTRIDER_${upper} AUTO CACHE STRING "Build postrider::${sink}: AUTO (when its library is found), ON, OFF")
  set_property(CACHE POSTRIDER_${upper} PROPERTY STRINGS AUTO ON OFF)
endforeach()
set(POSTRIDER_DASHBOARD AUTO CACHE STRING "Build the dashboard into the program: AUTO (when node and npm are found), ON, OFF")
set_property(CACHE POSTRIDER_DASHBOARD PROPERTY STRINGS AUTO ON OFF)
set(POSTRIDER_JEMALLOC AUTO CACHE STRING "Link the program with jemalloc: AUTO (when it is found), ON, OFF; never with a sanitizer")
set_property(CACHE POSTRIDER_JEMALLOC PROPERTY STRINGS AUTO ON OFF)

option(POSTRIDER_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(POSTRIDER_BUILD_BENCH "Build postrider-bench" OFF)
option(POSTRIDER_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(POSTRIDER_INSTALL "Make install rules" ${PROJECT_IS_TOP_LEVEL})
option(POSTRIDER_WERROR "Treat warnings as errors" OFF)
option(POSTRIDER_FAILPOINTS "Compile failpoints in, so that crash tests can kill the process at each" OFF)
set(POSTRIDER_SANITIZE "" CACHE STRING "Sanitizers for every target, e.g. address,undefined or thread")
option(POSTRIDER_FUZZ "Build the fuzzers of tests/fuzz; clang has what they need" OFF)
if(POSTRIDER_FUZZ AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "POSTRIDER_FUZZ=ON needs clang, which brings libFuzzer, not ${CMAKE_CXX_COMPILER_ID}. "
    "Use -DCMAKE_CXX_COMPILER=clang++-14, as the preset asan does, or leave the fuzzers out.")
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(CCACHE_PROGRAM ccache)
  mark_as_advanced(CCACHE_PROGRAM)
  if(CCACHE_PROGRAM)
    # Precompiled headers are cached only with the first two, and those of a fresh clone with the others. What one clone of the project compiled serves the others:
    # paths below it count from its root, also in what debuggers read.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}"
        "${CCACHE_PROGRAM}")
    add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.")
    add_compile_options("$<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>")
    add_compile_options("$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
endif()

# Directory scope: it reaches every target of ours, and none of a user's.
if(POSTRIDER_FAILPOINTS)
  add_compile_definitions(POSTRIDER_FAILPOINTS=1)
endif()
if(POSTRIDER_SANITIZE)
  add_compile_options(-fsanitize=${POSTRIDER_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${POSTRIDER_SANITIZE})
  if(POSTRIDER_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

# Warnings for one of our targets. Never PUBLIC: a user's warnings are the user's choice.
function(postrider_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
    -Wold-style-cast -Wcast-qual -Wformat=2 -Wimplicit-fallthrough -Wextra-semi -Wunused
    # Designated initializers that leave defaults alone are how options are passed here.
    -Wno-missing-field-initializers
    $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond -Wlogical-op>
    # Files that are compiled as one see each other's names; each by itself, as everywhere else, they do not.
    $<$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>:-Wno-shadow>
    # And g++ takes each of them for a header: there, a class with a member of an unnamed namespace would differ from file to
    # file.
    $<$<AND:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>
    # g++ 12 reports these falsely inside its own library once it inlines std::string and std::variant.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds>
    $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
    $<$<BOOL:${POSTRIDER_WERROR}>:-Werror>)
endfunction()
