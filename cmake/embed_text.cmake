# SPDX-License-Identifier: Apache-2.0
# Run with cmake -P: writes FILE into OUTPUT as `std::string_view NAMESPACE::NAME()`. As bytes: compilers need not take a
# literal of more than 65,536 characters.
cmake_minimum_required(VERSION 3.25)

file(READ "${FILE}" hex HEX)
string(REGEX REPLACE "(................................................................)" "\\1\n" lines "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${lines}")
file(WRITE "${OUTPUT}" "// Made from ${FILE}
#include <string_view>

namespace ${NAMESPACE} {
namespace {

constexpr unsigned char ${NAME}_bytes[] = {
${bytes}
};

}  // namespace

std::string_view ${NAME}() {
  return {reinterpret_cast<const char*>(${NAME}_bytes), sizeof ${NAME}_bytes};
}

}  // namespace ${NAMESPACE}
")
