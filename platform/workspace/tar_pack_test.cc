#include "workspace/tar_pack.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "base/test_folder.h"
#include "base/unique_fd.h"
#include "workspace/test_tar.h"

namespace muster::workspace {

namespace fs = std::filesystem;

namespace {

using base::ErrorCode;
using base::TestFolder;

/// Packs `path` and unpacks it to folder / "copy".
Unpacked round_trip(const fs::path& path, const fs::path& to) {
  const Packed packed = pack(path);
  EXPECT_TRUE(packed.tar) << packed.tar.error().what;
  return unpack(*packed.tar, {.target = to});
}

TEST(CopiedName, IsThePathsLastPartAndEmptyForTheContentOfAFolder) {
  const std::vector<std::pair<std::string, std::string>> names{
      {"a", "a"},   {"/a/b", "b"}, {"a/b/", "b"}, {"a//", "a"}, {".", ""}, {"a/.", ""},
      {"a/./", ""}, {"..", ""},    {"a/..", ""},  {"/", ""},    {"", ""},  {"...", "..."}};
  for (const auto& [path, name] : names) EXPECT_EQ(copied_name(path), name) << path;
}

TEST(TarPacker, KeepsTreesWithTheirModesLinksTimesAndNames) {
  const TestFolder folder;
  const fs::path from = folder / "from";
  fs::create_directories(from / "a/empty");
  write_text(from / "a/run", "#!/bin/sh\n");
  fs::permissions(from / "a/run", fs::perms(0750));
  write_text(from / "odd \xff\n\x1b[31m name", "x");
  fs::create_symlink("../nowhere", from / "a/link");
  fs::create_symlink("a", from / "to-folder");
  fs::create_hard_link(from / "a/run", from / "b");
  fs::permissions(from / "a/empty", fs::perms(0500));
  const timespec past{.tv_sec = 981'173'106, .tv_nsec = 123'456'789};
  for (const char* name : {"a/run", "a/empty", "a/link"}) {
    const std::array times{past, past};
    ::utimensat(AT_FDCWD, (from / name).c_str(), times.data(), AT_SYMLINK_NOFOLLOW);
  }

  const Unpacked unpacked = round_trip(from, folder / "to");

  ASSERT_TRUE(unpacked.totals) << unpacked.totals.error().what;
  EXPECT_EQ(unpacked.totals->files, 5U);
  EXPECT_EQ(tree_of(folder / "to"), tree_of(from));
  EXPECT_EQ(fs::hard_link_count(folder / "to/b"), 2U);
  for (const char* name : {"a/run", "a/empty", "a/link"}) {
    struct stat status{};
    ASSERT_EQ(::lstat((folder / "to" / name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mtim.tv_sec, past.tv_sec) << name;
    EXPECT_EQ(status.st_mtim.tv_nsec, past.tv_nsec) << name;
  }
}

TEST(TarPacker, FollowsTheNamedLinkAndNamesTheCopyAfterTheLink) {
  const TestFolder folder;
  write_text(folder / "real", "text");
  fs::create_symlink("real", folder / "link");
  fs::create_directory(folder / "to");

  ASSERT_TRUE(round_trip(folder / "link", folder / "to").totals);

  EXPECT_EQ(tree_of(folder / "to"), Lines{"link 644 'text'"});
}

TEST(TarPacker, KeepsHolesAndTheDataBetweenThem) {
  const TestFolder folder;
  constexpr int64_t kSize = 64 << 20;
  write_text(folder / "sparse", "head");
  fs::resize_file(folder / "sparse", kSize);
  const base::UniqueFd file(::open((folder / "sparse").c_str(), O_WRONLY));
  ASSERT_EQ(::pwrite(file.get(), "middle", 6, kSize / 2), 6);
  write_text(folder / "hole", "");
  fs::resize_file(folder / "hole", kSize);

  for (const char* name : {"sparse", "hole"}) {
    const Packed packed = pack(folder / name);
    ASSERT_TRUE(packed.tar);
    EXPECT_LT(packed.tar->size(), 1U << 20) << name;
    const Unpacked unpacked = unpack(*packed.tar, {.target = folder / "copy"});
    ASSERT_TRUE(unpacked.totals) << unpacked.totals.error().what;
    EXPECT_TRUE(text_of(folder / "copy") == text_of(folder / name)) << name;
    struct stat status{};
    ASSERT_EQ(::stat((folder / "copy").c_str(), &status), 0);
    EXPECT_LT(status.st_blocks * 512, kSize / 2) << name;
  }
}

TEST(TarPacker, RefusesOtherKindsByName) {
  const TestFolder folder;
  ::mkfifo((folder / "fifo").c_str(), 0600);
  fs::create_symlink("/dev/zero", folder / "link");
  const std::string only = ": only files and folders are copied";
  const std::vector<std::tuple<fs::path, ErrorCode, std::string>> cases{
      {folder / "fifo", ErrorCode::kInvalid, " is a fifo" + only},
      {"/dev/zero", ErrorCode::kInvalid, " is a device" + only},
      {folder / "link", ErrorCode::kInvalid, " is a device" + only},
      {folder / "none", ErrorCode::kNotFound, ""},
      {folder / "fifo/below", ErrorCode::kNotFound, ""}};
  for (const auto& [path, code, what] : cases) {
    const Packed packed = pack(path);
    ASSERT_FALSE(packed.tar) << path;
    EXPECT_EQ(packed.tar.error().code, code);
    EXPECT_EQ(packed.tar.error().what, code == ErrorCode::kNotFound
                                           ? "there is no '" + path.string() + "'"
                                           : "'" + path.string() + "'" + what);
  }
}

TEST(TarPacker, SkipsOtherKindsBelowWithANote) {
  const TestFolder folder;
  const fs::path from = folder / "from";
  fs::create_directory(from);
  ::mkfifo((from / "fifo").c_str(), 0600);
  const base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, (from / "sock").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  write_text(from / "z", "last");

  const Packed packed = pack(from);

  ASSERT_TRUE(packed.tar);
  EXPECT_EQ(packed.notes, (Lines{"skipped: '" + (from / "fifo").string() + "' is a fifo\n",
                                 "skipped: '" + (from / "sock").string() + "' is a socket\n"}));
  EXPECT_EQ(packed.totals.failed, 0U);
  ASSERT_TRUE(unpack(*packed.tar, {.target = folder / "to"}).totals);
  EXPECT_EQ(tree_of(folder / "to"), Lines{"z 644 'last'"});
}

/// Packs `name`, calls `meanwhile` after the first piece, and unpacks the result to "copy".
std::pair<Lines, Unpacked> copy_while(const TestFolder& folder, const char* name,
                                      const std::function<void()>& meanwhile) {
  Lines notes;
  auto packer =
      TarPacker::open(folder / name, [&](const CopyNote& note) { notes.push_back(to_line(note)); });
  EXPECT_TRUE(packer);
  std::string tar;
  for (bool first = true;; first = false) {
    const auto piece = packer->next();
    EXPECT_TRUE(piece);
    if (!piece || piece->empty()) break;
    tar += *piece;
    if (first) meanwhile();
  }
  return {notes, unpack(tar, {.target = folder / "copy"})};
}

TEST(TarPacker, CopiesTheBeginningOfAGrowingFile) {
  const TestFolder folder;
  const std::string before(300'000, 'a');
  write_text(folder / "log", before);

  const auto [notes, unpacked] = copy_while(folder, "log", [&] {
    std::ofstream(folder / "log", std::ios::app) << std::string(300'000, 'b');
  });

  EXPECT_EQ(notes, Lines());
  ASSERT_TRUE(unpacked.totals);
  EXPECT_TRUE(text_of(folder / "copy") == before);
}

TEST(TarPacker, PadsAShrinkingFileAndReportsIt) {
  const TestFolder folder;
  write_text(folder / "log", std::string(300'000, 'a'));

  const auto [notes, unpacked] =
      copy_while(folder, "log", [&] { fs::resize_file(folder / "log", 100'000); });

  EXPECT_EQ(
      notes,
      Lines{"failed: '" + (folder / "log").string() +
            "' became shorter while it was copied: the rest of the copy is filled with zeros\n"});
  ASSERT_TRUE(unpacked.totals);
  EXPECT_TRUE(text_of(folder / "copy") == std::string(100'000, 'a') + std::string(200'000, '\0'));
}

TEST(TarPacker, CopiesTheContentOfFilesThatTheKernelGenerates) {
  const TestFolder folder;
  const fs::path own = "/proc/self/limits";
  ASSERT_TRUE(round_trip(own, folder / "copy").totals);
  EXPECT_EQ(text_of(folder / "copy"), text_of(own));
  EXPECT_NE(text_of(own), "");

  const fs::path stated_larger = "/sys/devices/system/cpu/possible";
  ASSERT_TRUE(round_trip(stated_larger, folder / "cpus").totals);
  EXPECT_EQ(text_of(folder / "cpus"), text_of(stated_larger));
}

// /proc/self/mem has no readable byte at its beginning.
TEST(TarPacker, ReportsAGeneratedFileThatCannotBeRead) {
  const Packed packed = pack("/proc/self/mem");
  ASSERT_FALSE(packed.tar);
  EXPECT_EQ(packed.tar.error().what, "'/proc/self/mem' cannot be read: Input/output error");
}

/// Reads of the open file fail from now on: its descriptor becomes a descriptor for writing.
void let_reads_fail(const fs::path& file) {
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (fs::read_symlink(entry.path(), gone) != file) continue;
    const base::UniqueFd blind(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
    ::dup2(blind.get(), std::stoi(entry.path().filename().string()));
    return;
  }
}

TEST(TarPacker, EndsWithAnErrorInTheMiddleOfAFileAndTheEarlierCopyStays) {
  const TestFolder folder;
  write_text(folder / "log", std::string(300'000, 'a'));
  write_text(folder / "copy", "earlier");
  auto packer = TarPacker::open(folder / "log", [](const CopyNote&) {});
  ASSERT_TRUE(packer);
  bool is_first = true;
  const ReadTar read = [&] {
    auto piece = packer->next();
    if (std::exchange(is_first, false)) let_reads_fail(folder / "log");
    return piece;
  };

  const auto unpacked =
      unpack_tar(read, {.target = folder / "copy"}, {.on_note = [](const CopyNote&) {}});

  ASSERT_FALSE(unpacked);
  EXPECT_EQ(unpacked.error().what,
            "'" + (folder / "log").string() + "' cannot be read: Bad file descriptor");
  EXPECT_EQ(text_of(folder / "copy"), "earlier");
}

TEST(TarPacker, CopiesTheOtherFilesAfterAnErrorInTheMiddleOfAFileIfFailedFilesArePadded) {
  const TestFolder folder;
  const fs::path artifacts = folder / "artifacts";
  fs::create_directory(artifacts);
  write_text(artifacts / "a", "first");
  write_text(artifacts / "log", std::string(300'000, 'a'));
  write_text(artifacts / "z", "last");
  std::vector<std::string> notes;
  auto packer =
      TarPacker::open(artifacts, [&](const CopyNote& note) { notes.push_back(to_line(note)); });
  ASSERT_TRUE(packer);
  packer->pad_failed_files();
  std::string tar;
  while (true) {
    const auto piece = packer->next();
    ASSERT_TRUE(piece) << piece.error().what;
    if (piece->empty()) break;
    if (tar.empty()) let_reads_fail(artifacts / "log");
    tar += *piece;
  }

  const auto unpacked = unpack(tar, {.target = folder / "copy"});

  EXPECT_EQ(notes, Lines{"failed: '" + (artifacts / "log").string() +
                         "' cannot be read further (Bad file descriptor): the rest of the copy is "
                         "filled with zeros\n"});
  ASSERT_TRUE(unpacked.totals) << unpacked.totals.error().what;
  EXPECT_EQ(packer->totals().failed, 1U);
  EXPECT_EQ(fs::file_size(folder / "copy/log"), 300'000U);
  EXPECT_EQ(text_of(folder / "copy/a"), "first");
  EXPECT_EQ(text_of(folder / "copy/z"), "last");
}

TEST(TarPacker, CanBeDroppedAtOnceInTheMiddleOfATerabyte) {
  const TestFolder folder;
  constexpr int kMoreThanItKeepsApart = 5000;
  {
    const base::UniqueFd file(::open((folder / "file").c_str(), O_WRONLY | O_CREAT, 0600));
    for (int block = 0; block < kMoreThanItKeepsApart; ++block) {
      ASSERT_EQ(::pwrite(file.get(), "x", 1, off_t{block} << 16), 1);
    }
    ASSERT_EQ(::ftruncate(file.get(), off_t{1} << 40), 0);
  }
  auto packer = TarPacker::open(folder / "file", [](const CopyNote&) {});
  ASSERT_TRUE(packer);
  ASSERT_TRUE(packer->next());
}

/// Root can read everything, so it becomes another user for a while.
class AsOtherUser {
 public:
  AsOtherUser() : was_root_(::geteuid() == 0 && ::seteuid(kNobody) == 0) {}
  AsOtherUser(const AsOtherUser&) = delete;
  AsOtherUser& operator=(const AsOtherUser&) = delete;
  ~AsOtherUser() {
    if (was_root_ && ::seteuid(0) != 0) std::abort();
  }

 private:
  static constexpr uid_t kNobody = 65'534;
  bool was_root_;
};

TEST(TarPacker, CopiesTheRestIfAFileIsUnreadable) {
  const TestFolder folder;
  fs::permissions(folder.path(), fs::perms(0755));
  fs::create_directories(folder / "from/closed");
  write_text(folder / "from/a", "a");
  write_text(folder / "from/b", "b");
  fs::permissions(folder / "from/a", fs::perms::none);
  fs::permissions(folder / "from/closed", fs::perms::none);

  Packed packed;
  {
    const AsOtherUser other_user;
    packed = pack(folder / "from");
  }

  fs::permissions(folder / "from/closed", fs::perms(0755));
  const std::string from = (folder / "from").string();
  EXPECT_EQ(packed.notes,
            (Lines{"failed: '" + from + "/a' cannot be read: Permission denied\n",
                   "failed: '" + from + "/closed' cannot be read: Permission denied\n"}));
  EXPECT_EQ(packed.totals.failed, 2U);
  ASSERT_TRUE(unpack(*packed.tar, {.target = folder / "to"}).totals);
  EXPECT_EQ(tree_of(folder / "to"), Lines{"b 644 'b'"});
}

}  // namespace
}  // namespace muster::workspace
