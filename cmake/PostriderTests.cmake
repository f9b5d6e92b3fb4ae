# SPDX-License-Identifier: Apache-2.0
# GoogleTest executables and their ctest entries.

find_package(GTest REQUIRED)
find_package(rapidcheck REQUIRED)
if(PKG_CONFIG_FOUND AND POSTRIDER_HAVE_POSTGRES)
  pkg_check_modules(LIBPQXX QUIET IMPORTED_TARGET libpqxx)
endif()

set(POSTRIDER_RUN_GTEST "${PROJECT_SOURCE_DIR}/scripts/run-gtest")

# Where the code under test is optimised, the tests are not: it would take a third of their compilation, and they run once.
# And several are compiled as one in every preset: what they include takes most of their time.
function(postrider_test_options target)
  postrider_warnings(${target})
  target_compile_options(${target} PRIVATE -O0)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON)
endfunction()

# One precompiled header for all test executables. It belongs to an executable, because objects of libraries are
# compiled with other flags (-fPIC, not -fPIE). With g++ alone, as in PostriderRooms.cmake; and what clang has compiled
# behind one, no compiler cache gives to another clone.
function(postrider_test_header)
  if(NOT POSTRIDER_PRECOMPILE)
    return()
  endif()
  set(source "${PROJECT_BINARY_DIR}/generated/test_header.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "int main() {}\n" @ONLY)
  add_executable(postrider_test_header EXCLUDE_FROM_ALL "${source}")
  target_link_libraries(postrider_test_header PRIVATE GTest::gtest GTest::gmock rapidcheck Boost::json Threads::Threads)
  target_precompile_headers(postrider_test_header PRIVATE
    <atomic> <chrono> <filesystem> <functional> <future> <memory> <mutex> <optional> <span> <string> <string_view> <thread>
    <variant> <vector> <boost/json.hpp> <gmock/gmock.h> <gtest/gtest.h> <rapidcheck.h> <rapidcheck/gtest.h>)
  postrider_test_options(postrider_test_header)
endfunction()

# What `make sanitize` builds: the tests under the labels that it runs, and nothing else.
add_custom_target(sanitized-tests)
set(POSTRIDER_SANITIZED_LABELS unit conformance integration)

# postrider_test(<name> [SOURCES files...] [GLOB patterns...] [LINK libraries...])
# makes the executable <name>; nothing while there are no sources. It registers no ctest entry by itself.
function(postrider_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;GLOB;LINK" ${ARGN})
  set(sources ${ARG_SOURCES})
  if(ARG_GLOB)
    file(GLOB found CONFIGURE_DEPENDS ${ARG_GLOB})
    list(APPEND sources ${found})
  endif()
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE
    postrider_test_support GTest::gmock GTest::gtest GTest::gtest_main rapidcheck Boost::json ${ARG_LINK})
  if(POSTRIDER_PRECOMPILE)
    target_precompile_headers(${name} REUSE_FROM postrider_test_header)
  endif()
  postrider_test_options(${name})
endfunction()

# postrider_add_entry(<entry> <executable> LABEL label [FILTER filter] [NEEDS variable] [TIMEOUT s])
# One ctest entry. It fails when its filter matches no test; it is skipped when the variable NEEDS names is not set.
function(postrider_add_entry entry executable)
  cmake_parse_arguments(ARG "" "LABEL;FILTER;NEEDS;TIMEOUT" "" ${ARGN})
  set(options "")
  if(ARG_NEEDS)
    list(APPEND options "--needs=${ARG_NEEDS}")
  endif()
  if(NOT ARG_FILTER)
    set(ARG_FILTER "*")
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 900)
  endif()
  add_test(NAME ${entry} COMMAND "${POSTRIDER_RUN_GTEST}" ${options} $<TARGET_FILE:${executable}> "${ARG_FILTER}")
  set_tests_properties(${entry} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77)
  if(ARG_LABEL IN_LIST POSTRIDER_SANITIZED_LABELS)
    add_dependencies(sanitized-tests ${executable})
  endif()
endfunction()

# postrider_unit_test(<room> [folder]): <room>_test from the *_test.cpp beside the code.
function(postrider_unit_test room)
  set(folder ${ARGV1})
  if(NOT folder)
    set(folder ${room})
  endif()
  postrider_test(${room}_test GLOB "${PROJECT_SOURCE_DIR}/src/${folder}/*_test.cpp")
  if(TARGET ${room}_test)
    postrider_add_entry(${room}_test ${room}_test LABEL unit)
  endif()
endfunction()

# postrider_entries_per_backend(<name> <executable> LABEL label [TIMEOUT s] [SERVERS])
# <name>.<backend> runs the parametrised tests whose name ends in /<backend>; with SERVERS there is none for SQLite.
# <name>.plain runs all others, and is there when there are any.
function(postrider_entries_per_backend name executable)
  cmake_parse_arguments(ARG "SERVERS" "LABEL;TIMEOUT" "" ${ARGN})
  if(NOT TARGET ${executable})
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 900)
  endif()
  set(backends ${POSTRIDER_BACKENDS})
  if(ARG_SERVERS)
    list(REMOVE_ITEM backends sqlite)
  endif()
  foreach(backend IN LISTS backends)
    set(needs "")
    if(NOT backend STREQUAL "sqlite")
      string(TOUPPER "POSTRIDER_TEST_${backend}" needs)
      set(needs NEEDS ${needs})
    endif()
    postrider_add_entry(${name}.${backend} ${executable} FILTER "*/${backend}*" ${needs}
      LABEL ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
  endforeach()

  # Only the program knows, so ctest asks it when it starts. One that cannot answer has its entry, and fails there.
  set(filter "-*/sqlite*:*/postgres*:*/mariadb*:*.DISABLED_*")
  set(script "${CMAKE_CURRENT_BINARY_DIR}/${name}.plain.cmake")
  file(GENERATE OUTPUT "${script}" CONTENT
"execute_process(COMMAND \"$<TARGET_FILE:${executable}>\" --gtest_list_tests \"--gtest_filter=${filter}\"
  OUTPUT_VARIABLE tests ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR tests MATCHES \"\n  [^ ]\")
  add_test(\"${name}.plain\" \"${POSTRIDER_RUN_GTEST}\" \"$<TARGET_FILE:${executable}>\" \"${filter}\")
  set_tests_properties(\"${name}.plain\" PROPERTIES LABELS \"${ARG_LABEL}\" TIMEOUT ${ARG_TIMEOUT})
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${script}")
endfunction()
