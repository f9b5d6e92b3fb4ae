# SPDX-License-Identifier: Apache-2.0
# Run with cmake -P: writes FILE into OUTPUT as `std::string_view NAMESPACE::NAME()`.
cmake_minimum_required(VERSION 3.25)

set(delimiter "postrider_text")
file(READ "${FILE}" text)
string(FIND "${text}" ")${delimiter}\"" clash)
if(NOT clash EQUAL -1)
  message(FATAL_ERROR "${FILE}: contains the text )${delimiter}\", which cannot be embedded")
endif()
file(WRITE "${OUTPUT}" "// Made from ${FILE}
#include <string_view>

namespace ${NAMESPACE} {

std::string_view ${NAME}() {
  return R\"${delimiter}(${text})${delimiter}\";
}

}  // namespace ${NAMESPACE}
")
