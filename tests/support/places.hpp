// SPDX-License-Identifier: Apache-2.0
// Where the source tree and what was built from it are. One file alone is compiled with these paths, so that
// a compiler cache serves every clone.
#pragma once

#include <string>
#include <string_view>

namespace postrider::test {

/// A file of the source tree: source_file("docs/cli.md").
std::string source_file(std::string_view path);

/// The program postrider of this build.
std::string program_path();

/// A program that crash tests start and kill: crash_child("outbox_child").
std::string crash_child(std::string_view name);

}  // namespace postrider::test
