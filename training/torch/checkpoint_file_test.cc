#include "checkpoint_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "test_folder.h"

namespace muster::training {
namespace {

const CheckpointContent kContent{{"progress 1 2 3", "", "w: float32 [2]"},
                                 std::string("\0\1\n\xff", 4)};

class CheckpointFile : public ::testing::Test {
 protected:
  std::string path() const { return checkpoint_path(folder_.path()); }

  std::string bytes() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  void put(const std::string& bytes) const { std::ofstream(path(), std::ios::binary) << bytes; }

  // The message without the path; empty if the file is accepted.
  std::string fault() const {
    const auto read = read_checkpoint(folder_.path());
    return read ? "" : read.error().message.substr(path().size() + 1);
  }

  TestFolder folder_;
};

TEST_F(CheckpointFile, ReadsWhatWasWritten) {
  ASSERT_TRUE(write_checkpoint(folder_.path(), kContent));
  const auto read = read_checkpoint(folder_.path());
  ASSERT_TRUE(read && read->has_value());
  EXPECT_EQ(**read, kContent);
}

TEST_F(CheckpointFile, IsNulloptIfTheFileDoesNotExist) {
  const auto read = read_checkpoint(folder_.path() + "/nowhere");
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->has_value());
}

TEST_F(CheckpointFile, IsReadableByItsOwnerOnly) {
  const std::string folder = folder_.path() + "/new";
  ASSERT_TRUE(write_checkpoint(folder, kContent));
  struct stat status{};
  ASSERT_EQ(::stat(folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(::stat(checkpoint_path(folder).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(CheckpointFile, IsReadableByItsOwnerOnlyInAFolderNamedWithASlash) {
  const std::string folder = folder_.path() + "/above/new";
  ASSERT_TRUE(write_checkpoint(folder + "//", kContent));
  struct stat status{};
  ASSERT_EQ(::stat(folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(CheckpointFile, RequiresAFolder) {
  EXPECT_FALSE(write_checkpoint("", kContent));
}

TEST_F(CheckpointFile, IsReplacedAtomicallyAndLeavesNoDraft) {
  ASSERT_TRUE(write_checkpoint(folder_.path(), {{"old"}, "old"}));
  // The draft of a job that was killed while it wrote.
  std::ofstream(path() + ".new") << "half";
  ASSERT_TRUE(write_checkpoint(folder_.path(), kContent));
  EXPECT_EQ(**read_checkpoint(folder_.path()), kContent);
  EXPECT_FALSE(std::filesystem::exists(path() + ".new"));
}

// The name of the draft cannot be used: the previous checkpoint stays.
TEST_F(CheckpointFile, StaysIfANewOneCannotBeWritten) {
  ASSERT_TRUE(write_checkpoint(folder_.path(), kContent));
  std::filesystem::create_directories(path() + ".new/in the way");
  const auto written = write_checkpoint(folder_.path(), {{"new"}, "new"});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, collective::ErrorCode::kSystem);
  EXPECT_EQ(written.error().message, "cannot make " + path() + ".new: File exists");
  EXPECT_EQ(**read_checkpoint(folder_.path()), kContent);
}

TEST_F(CheckpointFile, IsRejectedIfTruncatedAnywhere) {
  ASSERT_TRUE(write_checkpoint(folder_.path(), kContent));
  const std::string whole = bytes();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    put(whole.substr(0, length));
    EXPECT_NE(fault(), "") << length;
  }
  put(whole + "x");
  EXPECT_NE(fault(), "");
  put(whole);
  EXPECT_EQ(fault(), "");
}

TEST_F(CheckpointFile, IsRejectedIfAnyByteIsChanged) {
  ASSERT_TRUE(write_checkpoint(folder_.path(), kContent));
  const std::string whole = bytes();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    put(damaged);
    EXPECT_NE(fault(), "") << at;
  }
}

TEST_F(CheckpointFile, NamesTheFault) {
  put("PK\3\4 a zip");
  EXPECT_EQ(fault(), "is not a Muster checkpoint");
  put("MUSTERCK");
  EXPECT_EQ(fault(), "is truncated after 8 bytes");
  ASSERT_TRUE(write_checkpoint(folder_.path(), kContent));
  std::string other = bytes();
  other[8] = 2;
  put(other);
  EXPECT_EQ(fault(), "is a checkpoint of version 2, but this program reads version 1");
  std::filesystem::remove(path());
  std::filesystem::create_directory(path());
  EXPECT_EQ(fault(), "is not a regular file");
}

TEST_F(CheckpointFile, IsRemovedFromFoldersWhoseWholeNameMatches) {
  const auto folder = [&](const std::string& name) { return folder_.path() + "/" + name; };
  for (const char* name : {"part-1-of-2", "part-12-of-2", "part-3-of-2", "part--of-2",
                           "part-1-of-2x", "xpart-1-of-2", "part-1-of-", "part-x-of-2"}) {
    ASSERT_TRUE(write_checkpoint(folder(name), kContent));
    std::ofstream(checkpoint_path(folder(name)) + ".new") << "a draft";
  }
  std::ofstream(folder("part-4-of-2")) << "a file";
  std::filesystem::create_directory_symlink(folder("part-x-of-2"), folder("part-5-of-2"));
  ASSERT_TRUE(write_checkpoint(folder("part-6-of-2"), kContent));
  std::ofstream(folder("part-6-of-2/more")) << "a file";

  remove_other_checkpoints(folder_.path(), "part-#-of-#", "part-3-");

  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    left.insert(entry.path().filename());
  }
  EXPECT_EQ(left, (std::set<std::string>{"part-3-of-2", "part--of-2", "part-1-of-2x",
                                         "xpart-1-of-2", "part-1-of-", "part-x-of-2", "part-4-of-2",
                                         "part-5-of-2", "part-6-of-2"}));
  EXPECT_TRUE(std::filesystem::exists(checkpoint_path(folder("part-x-of-2"))));
  EXPECT_TRUE(std::filesystem::exists(folder("part-6-of-2/more")));
  remove_other_checkpoints(folder("nowhere"), "part-#-of-#", "");
}

}  // namespace
}  // namespace muster::training
