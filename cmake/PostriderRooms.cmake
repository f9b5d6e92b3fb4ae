# SPDX-License-Identifier: Apache-2.0
# A room is a folder below src/ with one concern: its sources, and its unit tests beside them (*_test.cpp).
# New files are found by themselves at the next build.

# postrider_sources(<variable> <folder>): the folder's *.cpp without its tests.
function(postrider_sources variable folder)
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  set(${variable} "${sources}" PARENT_SCOPE)
endfunction()

# What nearly every file includes is compiled once. With g++ alone, and in our own tree alone: clang and whoever takes us
# into a tree of his own find the include that a file has forgotten.
set(POSTRIDER_COMMON_HEADERS
  <algorithm> <array> <atomic> <charconv> <chrono> <condition_variable> <cstdint> <deque> <exception> <functional> <limits>
  <map> <memory> <mutex> <optional> <set> <span> <stop_token> <string> <string_view> <system_error> <thread> <unordered_map>
  <utility> <variant> <vector>)
if(PROJECT_IS_TOP_LEVEL AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(POSTRIDER_PRECOMPILE TRUE)
  set(source "${PROJECT_BINARY_DIR}/generated/room_header.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "" @ONLY)
  add_library(postrider_room_header OBJECT EXCLUDE_FROM_ALL "${source}")
  target_link_libraries(postrider_room_header PRIVATE Threads::Threads)
  target_precompile_headers(postrider_room_header PRIVATE ${POSTRIDER_COMMON_HEADERS})
  postrider_warnings(postrider_room_header)
endif()

# What fuzzers send their bytes into, below src/. They see which ways an input takes through these rooms; to watch the
# others too would make every test of that build slower, and teach a fuzzer nothing.
set(POSTRIDER_FUZZED_ROOMS core storage logger config app)

# postrider_watch_for_fuzzers(<target> <folder>): nothing unless the folder is one of those.
function(postrider_watch_for_fuzzers target folder)
  if(POSTRIDER_FUZZ AND folder IN_LIST POSTRIDER_FUZZED_ROOMS)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# postrider_room(<name> [DIR folder] [GENERATED sources...] [LINK libraries...])
# makes the object library postrider_<name> from src/<folder>; nothing while the folder has no sources.
function(postrider_room name)
  cmake_parse_arguments(ARG "" "DIR" "GENERATED;LINK" ${ARGN})
  if(NOT ARG_DIR)
    set(ARG_DIR ${name})
  endif()
  postrider_sources(sources "${PROJECT_SOURCE_DIR}/src/${ARG_DIR}")
  list(APPEND sources ${ARG_GENERATED})
  if(NOT sources)
    return()
  endif()
  add_library(postrider_${name} OBJECT ${sources})
  target_include_directories(postrider_${name}
    PUBLIC "${PROJECT_SOURCE_DIR}/include" PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(postrider_${name} PRIVATE Threads::Threads Boost::json ${ARG_LINK})
  if(POSTRIDER_PRECOMPILE)
    target_precompile_headers(postrider_${name} REUSE_FROM postrider_room_header)
  endif()
  postrider_warnings(postrider_${name})
  postrider_watch_for_fuzzers(postrider_${name} "${ARG_DIR}")
endfunction()

# postrider_library(<target> <alias> ROOMS rooms...): one installed library, made of rooms.
function(postrider_library target alias)
  cmake_parse_arguments(ARG "" "" "ROOMS;SOURCES" ${ARGN})
  set(objects ${ARG_SOURCES})
  foreach(room IN LISTS ARG_ROOMS)
    if(TARGET postrider_${room})
      list(APPEND objects $<TARGET_OBJECTS:postrider_${room}>)
    endif()
  endforeach()
  add_library(${target} ${objects})
  add_library(postrider::${alias} ALIAS ${target})
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${alias} LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE "${PROJECT_SOURCE_DIR}/src")
  postrider_warnings(${target})
endfunction()

# postrider_program(<name> <folder> [INTERNAL]): an executable from all *.cpp of a folder, with every backend found.
# INTERNAL may include from src/.
function(postrider_program name folder)
  cmake_parse_arguments(ARG "INTERNAL" "" "" ${ARGN})
  postrider_sources(sources "${folder}")
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  if(ARG_INTERNAL)
    target_link_libraries(${name} PRIVATE ${POSTRIDER_BACKEND_LIBRARIES} Boost::json)
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  else()
    target_link_libraries(${name} PRIVATE postrider)
  endif()
  postrider_warnings(${name})
endfunction()
