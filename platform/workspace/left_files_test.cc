#include "workspace/left_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <map>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::workspace {
namespace {

using base::ErrorCode;
using LeftKind = LeftFile::Kind;

class LeftFilesTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path, std::ios::binary) << text;
  }

  std::vector<std::string> paths(const LookFor& query = {}) {
    std::vector<std::string> paths;
    const auto listed = list_left(folder_, query);
    EXPECT_TRUE(listed);
    for (const LeftFile& file : listed->files) paths.push_back(file.path);
    return paths;
  }

  ErrorCode refused(const std::string& path) {
    const auto opened = open_left(folder_, path);
    EXPECT_FALSE(opened) << path;
    return opened ? ErrorCode::kInternal : opened.error().code;
  }

  base::TestFolder folder_;
};

TEST_F(LeftFilesTest, AreListedByPathWithTheirSizes) {
  write("b", "22");
  write("a/z", "1");
  write("a.b", "4444");
  write("two\nlines \x1b[31m\xff", "");

  const auto listed = list_left(folder_, {});

  ASSERT_TRUE(listed);
  EXPECT_TRUE(listed->whole);
  EXPECT_EQ(paths(), (std::vector<std::string>{"a.b", "a/z", "b", "two\nlines \x1b[31m\xff"}));
  EXPECT_EQ(listed->files[0].bytes, 4);
  EXPECT_EQ(listed->files[1].kind, LeftKind::kFile);
}

TEST_F(LeftFilesTest, ATimePastTheLastOneIsShownAsTheLastOne) {
  // A file system may set an earlier time in place of these.
  constexpr base::Time kOf2038{std::chrono::seconds(2'145'916'800)};
  for (const time_t late : {time_t{9'223'372'036}, time_t{10'413'792'000}, time_t{1} << 35}) {
    write("late", "");
    const std::array<timespec, 2> times{timespec{.tv_sec = late, .tv_nsec = 999'999'999},
                                        timespec{.tv_sec = late, .tv_nsec = 999'999'999}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (folder_ / "late").c_str(), times.data(), 0), 0);

    EXPECT_GE(list_left(folder_, {})->files[0].modified, kOf2038);
    EXPECT_GE(open_left(folder_, "late")->modified, kOf2038);
  }
}

TEST_F(LeftFilesTest, AMissingFolderHasNoFiles) {
  const auto listed = list_left(folder_ / "never", {});

  ASSERT_TRUE(listed);
  EXPECT_TRUE(listed->files.empty());
  EXPECT_TRUE(listed->whole);
}

TEST_F(LeftFilesTest, PagesHaveNoGaps) {
  for (const char* path : {"a/1", "a/2", "a.x", "b", "c/d/e", "c/f"}) write(path, "x");
  const std::vector<std::string> all = paths();

  for (size_t most = 1; most <= all.size(); ++most) {
    std::vector<std::string> seen;
    LookFor query{.prefix = "", .after = "", .most = most};
    while (true) {
      const auto page = list_left(folder_, query);
      ASSERT_TRUE(page);
      for (const LeftFile& file : page->files) seen.push_back(file.path);
      if (page->whole) break;
      query.after = seen.back();
    }
    EXPECT_EQ(seen, all) << most;
  }
}

TEST_F(LeftFilesTest, AFolderWithTooManyEntriesIsNotListedButFilesThatAreNamedAre) {
  for (const char* path : {"a", "big/1", "big/2", "big/3", "big/4"}) write(path, "x");
  const LookFor all{.prefix = "", .after = "", .most_entries = 5};

  const auto listed = list_left(folder_, all);
  ASSERT_TRUE(listed);
  EXPECT_EQ(paths(all), std::vector<std::string>{"a"});
  EXPECT_FALSE(listed->whole);
  // The request for the next page ends the same way.
  const auto next = list_left(folder_, {.prefix = "", .after = "a", .most_entries = 5});
  EXPECT_TRUE(next->files.empty());
  EXPECT_FALSE(next->whole);

  const auto named = list_left(folder_, {.prefix = "big/3", .after = "", .most_entries = 5});
  ASSERT_EQ(named->files.size(), 1U);
  EXPECT_EQ(named->files[0].path, "big/3");
  EXPECT_TRUE(named->whole);
  // Not even the names of a very large folder are read.
  EXPECT_FALSE(list_left(folder_, {.prefix = "big/3", .after = "", .most_entries = 2})->whole);
}

TEST_F(LeftFilesTest, APrefixAppliesToPathsNotToFolders) {
  for (const char* path : {"run-1/a", "run-1/b", "run-10/a", "other"}) write(path, "x");

  EXPECT_EQ(paths({.prefix = "run-1/"}), (std::vector<std::string>{"run-1/a", "run-1/b"}));
  EXPECT_EQ(paths({.prefix = "run-1"}),
            (std::vector<std::string>{"run-1/a", "run-1/b", "run-10/a"}));
  EXPECT_EQ(paths({.prefix = "run-1/b"}), (std::vector<std::string>{"run-1/b"}));
}

TEST_F(LeftFilesTest, OtherKindsAreListedButNeverOpened) {
  write("file", "x");
  std::filesystem::create_symlink("/etc/passwd", folder_ / "link");
  std::filesystem::create_symlink("/etc", folder_ / "folder-link");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  const base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  (folder_ / "socket").string().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);

  const auto listed = list_left(folder_, {});

  ASSERT_TRUE(listed);
  std::map<std::string, LeftKind> kinds;
  for (const LeftFile& file : listed->files) kinds[file.path] = file.kind;
  EXPECT_EQ(kinds, (std::map<std::string, LeftKind>{{"file", LeftKind::kFile},
                                                    {"folder-link", LeftKind::kLink},
                                                    {"link", LeftKind::kLink},
                                                    {"pipe", LeftKind::kPipe},
                                                    {"socket", LeftKind::kSocket}}));
  for (const char* path : {"link", "pipe", "socket"})
    EXPECT_EQ(refused(path), ErrorCode::kConflict);
  EXPECT_EQ(refused("folder-link/passwd"), ErrorCode::kNotFound);
}

TEST_F(LeftFilesTest, PathsOutOfTheFolderAreRefused) {
  write("in/file", "x");

  for (const std::string path :
       {"", "/etc/passwd", "../x", "in/../../x", "in//file", "./in/file", "in/."}) {
    EXPECT_EQ(refused(path), ErrorCode::kInvalid);
  }
  EXPECT_EQ(refused(std::string("in/file\0x", 9)), ErrorCode::kInvalid);
  EXPECT_EQ(refused("in/other"), ErrorCode::kNotFound);
  EXPECT_EQ(refused("in"), ErrorCode::kConflict);
}

TEST_F(LeftFilesTest, AnUnreadableOrTooDeepFolderIsListedItself) {
  std::filesystem::create_directory(folder_ / "closed");
  ASSERT_EQ(::chmod((folder_ / "closed").c_str(), 0), 0);
  std::string deep = "deep";
  for (int level = 0; level < 300; ++level) deep += "/d";
  std::filesystem::create_directories(folder_ / deep);

  const auto listed = list_left(folder_, {});

  ASSERT_TRUE(listed);
  // Root can read every folder.
  ASSERT_EQ(listed->files.size(), ::geteuid() == 0 ? 1U : 2U);
  EXPECT_EQ(listed->files.back().kind, LeftKind::kFolder);
  EXPECT_LT(listed->files.back().path.size(), deep.size());
  ASSERT_EQ(::chmod((folder_ / "closed").c_str(), 0700), 0);
}

TEST_F(LeftFilesTest, AChecksumCoversTheWholeFile) {
  write("file", "abc");
  Summing summing(*open_left(folder_, "file"));

  EXPECT_FALSE(summing.go_on(0));
  EXPECT_TRUE(summing.go_on(1 << 20));

  EXPECT_EQ(summing.sum(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(LeftFilesTest, AFileThatChangesWhileItIsReadHasNoChecksum) {
  write("file", std::string(1 << 20, 'x'));
  Summing grown(*open_left(folder_, "file"));
  EXPECT_FALSE(grown.go_on(1000));
  EXPECT_FALSE(grown.has_changed());
  std::ofstream(folder_ / "file", std::ios::app) << "more";
  EXPECT_TRUE(grown.has_changed());
  while (!grown.go_on(1 << 20)) continue;
  EXPECT_EQ(grown.sum(), std::nullopt);

  Summing cut(*open_left(folder_, "file"));
  EXPECT_FALSE(cut.go_on(1000));
  std::filesystem::resize_file(folder_ / "file", 10);
  while (!cut.go_on(1 << 20)) continue;
  EXPECT_EQ(cut.sum(), std::nullopt);
}

TEST_F(LeftFilesTest, AnEmptyFileHasTheChecksumOfNoBytes) {
  write("file", "");
  Summing summing(*open_left(folder_, "file"));

  EXPECT_TRUE(summing.go_on(1));

  EXPECT_EQ(summing.sum(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_F(LeftFilesTest, ReadingStopsAtTheEnd) {
  write("file", "0123456789");
  const OpenedFile file = *open_left(folder_, "file");

  EXPECT_EQ(*read_at(file.fd, 4, 3), "456");
  EXPECT_EQ(*read_at(file.fd, 8, 100), "89");
  EXPECT_EQ(*read_at(file.fd, 10, 100), "");
}

}  // namespace
}  // namespace muster::workspace
