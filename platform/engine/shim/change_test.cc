#include "engine/shim/change.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

// --- one file after another

class ReplaceFiles : public testing::Test {
 protected:
  ReplaceFiles() {
    fs::create_directories(generated() / "ssh");
    fs::create_directory(folder_ / "elsewhere");
    EXPECT_TRUE(base::write_new_file(generated() / "hostfile", "old\n"));
    EXPECT_TRUE(base::write_new_file(folder_ / "victim", "untouched\n"));
  }

  fs::path generated() const { return folder_ / "generated"; }
  std::string content(const std::string& path) const {
    const auto text = base::read_file(generated() / path);
    return text ? *text : text.error().what;
  }
  static mode_t mode_of(const fs::path& path) {
    struct stat status{};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    return status.st_mode;
  }
  size_t entries(const fs::path& folder) const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }

  const base::TestFolder folder_;
};

TEST_F(ReplaceFiles, SetsContentAndModeAndLeavesNoOtherFile) {
  const mode_t before = ::umask(0077);
  const auto replaced = replace_files(
      generated(), {{.path = "hostfile", .content = "new\n", .mode = 0644},
                    {.path = "discover_hosts.sh", .content = "#!/bin/sh\n", .mode = 0700},
                    {.path = "ssh/config", .content = "Host *\n"},
                    {.path = "a/b/c", .content = ""}});
  ::umask(before);

  ASSERT_TRUE(replaced) << replaced.error().to_string();
  EXPECT_EQ(content("hostfile"), "new\n");
  EXPECT_EQ(mode_of(generated() / "hostfile"), S_IFREG | 0644U);
  EXPECT_EQ(mode_of(generated() / "discover_hosts.sh"), S_IFREG | 0700U);
  EXPECT_EQ(mode_of(generated() / "ssh/config"), S_IFREG | 0600U);
  EXPECT_EQ(mode_of(generated() / "a"), S_IFDIR | 0700U);
  EXPECT_EQ(content("a/b/c"), "");
  EXPECT_EQ(entries(generated()), 4U);
}

TEST_F(ReplaceFiles, AnOpenFileKeepsItsOldContent) {
  const base::UniqueFd reader(::open((generated() / "hostfile").c_str(), O_RDONLY | O_CLOEXEC));

  ASSERT_TRUE(replace_files(generated(), {{.path = "hostfile", .content = "new\n"}}));

  EXPECT_EQ(*base::read_file("/proc/self/fd/" + std::to_string(reader.get())), "old\n");
}

TEST_F(ReplaceFiles, ReplacesLinksWithoutFollowingThem) {
  fs::remove(generated() / "hostfile");
  fs::create_symlink(folder_ / "victim", generated() / "hostfile");
  fs::remove(generated() / "ssh");
  fs::create_directory_symlink(folder_ / "elsewhere", generated() / "ssh");
  ASSERT_TRUE(base::write_new_file(generated() / "a", "a file\n"));

  const auto replaced = replace_files(generated(), {{.path = "hostfile", .content = "new\n"},
                                                    {.path = "ssh/config", .content = "Host *\n"},
                                                    {.path = "a/b", .content = "below\n"}});

  ASSERT_TRUE(replaced) << replaced.error().to_string();
  EXPECT_EQ(mode_of(generated() / "hostfile"), S_IFREG | 0600U);
  EXPECT_EQ(mode_of(generated() / "ssh"), S_IFDIR | 0700U);
  EXPECT_EQ(content("a/b"), "below\n");
  EXPECT_EQ(*base::read_file(folder_ / "victim"), "untouched\n");
  EXPECT_TRUE(fs::is_empty(folder_ / "elsewhere"));
}

TEST_F(ReplaceFiles, AFolderInPlaceOfAFileIsAConflict) {
  const auto replaced = replace_files(generated(), {{.path = "ssh", .content = "new\n"}});

  ASSERT_FALSE(replaced);
  EXPECT_EQ(replaced.error().code, base::ErrorCode::kConflict);
  EXPECT_EQ(replaced.error().what, "cannot write 'ssh': Is a directory");
  EXPECT_EQ(entries(generated()), 2U);
}

TEST_F(ReplaceFiles, RejectsPathsOutsideTheFolder) {
  for (const char* path : {"../victim", "/etc/hosts", "ssh/../../victim", "", ".", "ssh/"}) {
    const auto replaced = replace_files(generated(), {{.path = path, .content = "new\n"}});
    ASSERT_FALSE(replaced) << path;
    EXPECT_EQ(replaced.error().code, base::ErrorCode::kInvalid) << path;
  }
  EXPECT_EQ(*base::read_file(folder_ / "victim"), "untouched\n");
}

TEST_F(ReplaceFiles, RejectsAGeneratedFolderThatIsALinkOrMissing) {
  fs::create_directory_symlink(generated(), folder_ / "link");

  EXPECT_FALSE(replace_files(folder_ / "link", {{.path = "hostfile", .content = "new\n"}}));
  EXPECT_EQ(replace_files(folder_ / "gone", {{.path = "hostfile"}}).error().code,
            base::ErrorCode::kNotFound);
  EXPECT_EQ(content("hostfile"), "old\n");
}

// --- all files of one change

using PlannedFiles = std::vector<launch::PlannedFile>;

TEST(ChangedFiles, SurviveEncodingAndDecoding) {
  const PlannedFiles files{
      {.path = "hostfile", .content = std::string("w\0\xff\n", 4), .mode = 0644},
      {.path = "rank", .content = "", .mode = 0700}};

  const auto read = decode_files(encode(files));

  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(*read, files);
  for (const char* text : {"", "{", "\xa0", "nonsense"}) EXPECT_FALSE(decode_files(text)) << text;
}

class ChangeFiles : public testing::Test {
 protected:
  ChangeFiles() { std::filesystem::create_directory(task_.generated()); }

  const base::TestFolder folder_;
  const TaskFolder task_{folder_.path()};
};

TEST_F(ChangeFiles, AlsoChangesTheCopyThatTheMpiReads) {
  ASSERT_TRUE(base::write_file(
      task_.plan(), encode(ShimPlan{.inner = {.taken_from = {{"hostfile", "hostfile.intel"},
                                                             {"other", "not.changed"}}}})));

  ASSERT_TRUE(change_files(task_, {{.path = "hostfile", .content = "w slots=1\n"},
                                   {.path = "hostfile.intel", .content = "w:1\n"},
                                   {.path = "other", .content = "its own\n"}}));

  EXPECT_EQ(*base::read_file(task_.generated() / "hostfile"), "w:1\n");
  EXPECT_EQ(*base::read_file(task_.generated() / "hostfile.intel"), "w:1\n");
  EXPECT_EQ(*base::read_file(task_.generated() / "other"), "its own\n");
}

TEST_F(ChangeFiles, UsesTheGeneratedFolderOfThePlan) {
  std::filesystem::create_directory(folder_ / "elsewhere");
  ASSERT_TRUE(base::write_file(task_.plan(),
                               encode(ShimPlan{.generated = (folder_ / "elsewhere").string()})));

  ASSERT_TRUE(change_files(task_, {{.path = "hostfile", .content = "w slots=1\n"}}));

  EXPECT_EQ(*base::read_file(folder_ / "elsewhere/hostfile"), "w slots=1\n");
}

TEST_F(ChangeFiles, ATaskThatHasEndedIsNotFound) {
  EXPECT_EQ(change_files(task_, {{.path = "hostfile"}}).error().code, base::ErrorCode::kNotFound);
}

}  // namespace

}  // namespace muster::engine
