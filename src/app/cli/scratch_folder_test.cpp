// SPDX-License-Identifier: Apache-2.0
#include "app/cli/scratch_folder.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace postrider::cli {
namespace {

TEST(ScratchFolderTest, IsGoneWithAllThatIsInIt) {
  std::string path;
  {
    const ScratchFolder folder("postrider-some");
    path = folder.path();
    EXPECT_THAT(std::filesystem::path(path).filename().string(), ::testing::StartsWith("postrider-some-"));
    struct stat about {};
    ASSERT_EQ(::stat(path.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777U, 0700U) << "its owner's alone";
    std::filesystem::create_directories(folder.file("a/b"));
    std::ofstream(folder.file("a/b/c")) << "x";
    const ScratchFolder other("postrider-some");
    EXPECT_NE(other.path(), path);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ScratchFolderTest, StaysWhenItIsToBeKept) {
  std::string path;
  {
    ScratchFolder folder;
    folder.keep();
    path = folder.path();
  }
  EXPECT_TRUE(std::filesystem::is_directory(path));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace postrider::cli
