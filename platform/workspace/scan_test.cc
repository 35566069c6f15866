#include "workspace/scan.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>

#include "base/test_faults.h"
#include "base/test_folder.h"
#include "base/unique_fd.h"

namespace muster::workspace {

namespace fs = std::filesystem;

namespace {

using base::ErrorCode;
using Texts = std::vector<std::string>;

class ScanFolder : public testing::Test {
 protected:
  fs::path plant(const std::string& path, const std::string& content = "") const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << content;
    return root_ / path;
  }

  /// A file of this size that uses no disk space.
  void plant_sparse(const std::string& path, int64_t bytes) const {
    ASSERT_EQ(::truncate(plant(path).c_str(), bytes), 0);
  }

  Result<Scan> scan(const ScanOptions& options = {}) const { return scan_folder(root_, options); }

  /// The paths in it; those of folders end with '/'.
  Texts paths(const ScanOptions& options = {}) const {
    const auto scanned = scan(options);
    if (!scanned) return {scanned.error().to_string()};
    Texts texts;
    for (const ManifestEntry& entry : scanned->manifest.entries) {
      texts.push_back(entry.path + (entry.kind == ManifestEntry::Kind::kFolder ? "/" : ""));
    }
    return texts;
  }

  std::string quoted_root() const { return "'" + root_.string() + "'"; }

  const base::TestFolder work_;
  const fs::path root_ = [this] {
    fs::create_directory(work_ / "tree");
    return work_ / "tree";
  }();
};

TEST_F(ScanFolder, ListsFilesFoldersAndLinksUnchanged) {
  plant("src/main.py", "print()");
  fs::permissions(plant("run.sh", "#!"), fs::perms::owner_exec, fs::perm_options::add);
  fs::create_directory(root_ / "empty");
  fs::create_symlink("src/main.py", root_ / "latest");
  fs::create_directory_symlink("../src", root_ / "src/self");

  const auto scanned = scan();

  ASSERT_TRUE(scanned) << scanned.error().to_string();
  using Kind = ManifestEntry::Kind;
  const std::vector<ManifestEntry> expected{
      {.kind = Kind::kFolder, .path = "empty"},
      {.kind = Kind::kLink, .path = "latest", .link = "src/main.py"},
      {.path = "run.sh", .executable = true, .bytes = 2, .chunks = {chunk_id("#!")}},
      {.kind = Kind::kFolder, .path = "src"},
      {.path = "src/main.py", .bytes = 7, .chunks = {chunk_id("print()")}},
      {.kind = Kind::kLink, .path = "src/self", .link = "../src"}};
  EXPECT_EQ(scanned->manifest.entries, expected);
  EXPECT_EQ(scanned->encoded, encode(scanned->manifest));
  EXPECT_EQ(scanned->id, tree_id(scanned->encoded));
  EXPECT_TRUE(decode_manifest(scanned->encoded));
}

TEST_F(ScanFolder, GivesEqualContentTheSameId) {
  const fs::path script = plant("a/run", "x");
  const std::string id = scan()->id;
  fs::last_write_time(script, fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(scan()->id, id);
  const fs::path moved = work_ / "elsewhere";
  fs::rename(root_, moved);
  EXPECT_EQ(scan_folder(moved, {})->id, id);

  fs::permissions(moved / "a/run", fs::perms::owner_exec, fs::perm_options::add);
  EXPECT_NE(scan_folder(moved, {})->id, id);
}

TEST_F(ScanFolder, AcceptsALinkToTheFolderAndAnEmptyFolder) {
  fs::create_directory_symlink(root_, work_ / "link");

  const auto scanned = scan_folder(work_ / "link", {});

  ASSERT_TRUE(scanned);
  EXPECT_EQ(scanned->encoded, encode({}));
}

TEST_F(ScanFolder, ReportsAMissingFolder) {
  EXPECT_EQ(scan_folder(root_ / "none", {}).error().code, ErrorCode::kNotFound);
  const auto file = scan_folder(plant("file"), {});
  EXPECT_EQ(file.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(file.error().what, "'" + root_.string() + "/file' is not a folder");
}

TEST_F(ScanFolder, NamesAllEntriesThatCannotBeSent) {
  plant("good", "x");
  fs::create_symlink("/etc/passwd", root_ / "absolute");
  fs::create_directory(root_ / "d");
  fs::create_symlink("../../secret", root_ / "d/outward");
  fs::create_symlink("d/../good", root_ / "around");
  ASSERT_EQ(::mkfifo((root_ / "pipe\nline").c_str(), 0600), 0);
  ASSERT_EQ(::mknod((root_ / "socket").c_str(), S_IFSOCK | 0600, 0), 0);

  const auto scanned = scan();

  ASSERT_FALSE(scanned);
  EXPECT_EQ(scanned.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(scanned.error().what, "the workspace " + quoted_root() +
                                      " is not sent: it contains entries that cannot be sent");
  EXPECT_EQ(base::faults_of(scanned),
            (Texts{"'absolute' is a link to '/etc/passwd', which is absolute",
                   "'around' is a link to 'd/../good', which leads out of the folder, or has a "
                   "'..' after a name",
                   "'d/outward' is a link to '../../secret', which leads out of the folder, or has "
                   "a '..' after a name",
                   R"('pipe\nline' is a pipe)", "'socket' is a socket"}));
}

TEST_F(ScanFolder, NamesTheFirstTwentyFaultsAndCountsTheRest) {
  for (int i = 100; i < 125; ++i) fs::create_symlink("/", root_ / std::to_string(i));

  const auto faults = base::faults_of(scan());

  ASSERT_EQ(faults.size(), 21U);
  EXPECT_EQ(faults[19], "'119' is a link to '/', which is absolute");
  EXPECT_EQ(faults[20], " and 5 more");
}

/// Root, who can read everything, becomes another user; other users do not change.
class OtherUser {
 public:
  explicit OtherUser(const std::vector<fs::path>& owned) {
    if (::geteuid() != 0) return;
    constexpr uid_t kNobody = 65534;
    for (const fs::path& path : owned) EXPECT_EQ(::chown(path.c_str(), kNobody, kNobody), 0);
    EXPECT_EQ(::seteuid(kNobody), 0);
  }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;
  ~OtherUser() {
    if (::getuid() == 0) {
      EXPECT_EQ(::seteuid(0), 0);
    }
  }
};

TEST_F(ScanFolder, NamesUnreadableFiles) {
  const OtherUser other_user({work_, root_});
  plant(".gitignore", "*.o");
  plant("secret", "x");
  plant("closed/file", "x");
  for (const char* name : {".gitignore", "secret", "closed"}) {
    fs::permissions(root_ / name, fs::perms::none);
  }

  const auto scanned = scan();
  const auto without =
      paths({.ignore = {".gitignore", "secret", "closed/"}, .use_gitignore = false});

  fs::permissions(root_ / "closed", fs::perms::owner_all);
  EXPECT_EQ(base::faults_of(scanned), (Texts{"'.gitignore' cannot be read: Permission denied",
                                             "'closed' cannot be read: Permission denied",
                                             "'secret' cannot be read: Permission denied"}));
  EXPECT_EQ(without, Texts{});
}

TEST_F(ScanFolder, AcceptsNamesOfAnyBytes) {
  plant("two\nlines", "1");
  plant("no utf-8 \xff\xfe", "2");
  plant(" -rf *", "3");

  EXPECT_EQ(paths(), (Texts{" -rf *", "no utf-8 \xff\xfe", "two\nlines"}));
  EXPECT_TRUE(decode_manifest(scan()->encoded));
}

TEST_F(ScanFolder, OmitsFilesExcludedByGitAndTheCaller) {
  plant(".gitignore", "*.o\nbuild/\n");
  plant(".git/config");
  plant("build/out");
  plant("src/.gitignore", "!keep.o\nlocal\n");
  plant("src/keep.o");
  plant("src/drop.o");
  plant("src/local");
  plant("data/huge");
  fs::create_symlink("/dev/null", root_ / "link.o");

  EXPECT_EQ(paths({.ignore = {"data/"}}),
            (Texts{".gitignore", "src/", "src/.gitignore", "src/keep.o"}));
  const Texts all = paths({.ignore = {"*.o"}, .use_gitignore = false});
  EXPECT_EQ(all, (Texts{".gitignore", "build/", "build/out", "data/", "data/huge", "src/",
                        "src/.gitignore", "src/local"}));
}

TEST_F(ScanFolder, RefusesUnreadableRules) {
  plant_sparse("d/.gitignore", (1 << 20) + 1);

  EXPECT_EQ(base::faults_of(scan()), (Texts{"'d/.gitignore' is larger than 1 MiB"}));
}

TEST_F(ScanFolder, RefusesTwoGigabytesUnreadAndNamesTheLargestFolders) {
  plant_sparse("venv/lib/torch.so", int64_t{1} << 30);
  plant_sparse("app/web/node_modules/x/y", int64_t{600} << 20);
  plant("app/main.py", "x");
  plant_sparse("model.bin", int64_t{300} << 20);
  plant_sparse(".cache/a", int64_t{200} << 20);
  plant_sparse("e/a", 2048);
  plant_sparse("f/a", 1024);
  bool read = false;

  const auto scanned = scan_folder(root_, {}, [&](int64_t, int64_t) { read = true; });

  ASSERT_FALSE(scanned);
  EXPECT_FALSE(read);
  EXPECT_EQ(scanned.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(scanned.error().to_string(),
            "the workspace " + quoted_root() +
                " is not sent: it has 2.1 GiB, but at most 1 GiB is sent\n"
                "  'venv/lib/': has 1 GiB in 1 entry\n"
                "  'app/web/node_modules/x/': has 600 MiB in 1 entry\n"
                "  'model.bin': has 300 MiB\n"
                "  '.cache/': has 200 MiB in 1 entry\n"
                "  'e/': has 2 KiB in 1 entry\n"
                "  exclude files that the job does not need, by a line in .gitignore or by "
                "--ignore, or raise the limit: MUSTER_WORKSPACE_LIMIT=3G");
}

TEST_F(ScanFolder, AddsUpHugeSizesOfSparseFiles) {
  for (const char* name : {"a", "b", "c"}) plant_sparse(name, int64_t{1} << 43);

  const auto scanned = scan();

  ASSERT_FALSE(scanned);
  EXPECT_NE(scanned.error().what.find("it has 24 TiB"), std::string::npos) << scanned.error().what;
}

TEST_F(ScanFolder, ReportsTheSizeAndInvalidEntriesTogether) {
  plant_sparse("large", 10);
  fs::create_symlink("/etc", root_ / "link");

  EXPECT_EQ(base::faults_of(scan({.most_bytes = 9})),
            (Texts{"'link' is a link to '/etc', which is absolute", "'large' has 10 B"}));
}

TEST_F(ScanFolder, RefusesTooManyEntriesAndNamesTheLargestFolders) {
  for (int i = 0; i < 8; ++i) plant("many/" + std::to_string(i));
  plant("few/1");

  const auto scanned = scan({.most_entries = 5});

  ASSERT_FALSE(scanned);
  EXPECT_EQ(scanned.error().what,
            "the workspace " + quoted_root() +
                " is not sent: it has 11 entries, but at most 5 entries are sent");
  EXPECT_EQ(base::faults_of(scanned),
            (Texts{"'many/' has 0 B in 8 entries", "'few/' has 0 B in 1 entry"}));
}

TEST_F(ScanFolder, StopsEarlyFarAboveTheLimit) {
  for (int i = 0; i < 20; ++i) plant("many/" + std::to_string(i));
  for (int i = 0; i < 20; ++i) plant("more/" + std::to_string(i));

  const auto scanned = scan({.most_entries = 3});

  ASSERT_FALSE(scanned);
  EXPECT_NE(scanned.error().what.find("it has at least 16 entries"), std::string::npos)
      << scanned.error().what;
  EXPECT_EQ(base::faults_of(scanned), (Texts{"'many/' has 0 B in 15 entries"}));
}

TEST_F(ScanFolder, RefusesTooDeeplyNestedFolders) {
  fs::path deep = root_;
  for (size_t i = 0; i <= kMostDepth; ++i) deep /= "d";
  fs::create_directories(deep);
  EXPECT_TRUE(scan());
  fs::create_directories(deep / "d");

  const auto scanned = scan();

  ASSERT_FALSE(scanned);
  ASSERT_EQ(scanned.error().faults.size(), 1U);
  EXPECT_TRUE(scanned.error().faults[0].what.starts_with("is nested too deep"));
}

TEST_F(ScanFolder, ReadsHolesAsZerosAndListsAChunkOnce) {
  plant_sparse("holes", 3 * int64_t{kChunkBytes} + 5);
  plant("same", std::string(5, '\0'));
  fs::create_hard_link(root_ / "same", root_ / "again");

  const auto scanned = scan();

  ASSERT_TRUE(scanned);
  const ChunkId zeros = chunk_id(std::string(kChunkBytes, '\0'));
  const ChunkId five = chunk_id(std::string(5, '\0'));
  const auto& entries = scanned->manifest.entries;
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].chunks, (std::vector{five}));
  EXPECT_EQ(entries[1].chunks, (std::vector{zeros, zeros, zeros, five}));
  ASSERT_EQ(scanned->chunks.size(), 2U);
  for (const ChunkSource& source : scanned->chunks) {
    const auto content = read_chunk(source);
    ASSERT_TRUE(content);
    EXPECT_EQ(chunk_id(*content), source.id);
  }
}

TEST_F(ScanFolder, ReportsProgress) {
  plant_sparse("a", int64_t{kChunkBytes} + 1);
  plant("b", "12");
  std::vector<std::pair<int64_t, int64_t>> progress;

  ASSERT_TRUE(
      scan_folder(root_, {}, [&](int64_t done, int64_t all) { progress.emplace_back(done, all); }));

  constexpr auto kAll = static_cast<int64_t>(kChunkBytes + 3);
  EXPECT_EQ(progress, (std::vector<std::pair<int64_t, int64_t>>{
                          {kChunkBytes, kAll}, {kAll - 2, kAll}, {kAll, kAll}}));
}

/// Changes a file after the scan has read its first chunk.
class DuringTheScan : public ScanFolder {
 protected:
  Result<Scan> scan_while(const std::function<void()>& act) const {
    bool acted = false;
    return scan_folder(root_, {}, [&](int64_t, int64_t) {
      if (!std::exchange(acted, true)) act();
    });
  }
};

TEST_F(DuringTheScan, AWriteToAFileIsAFault) {
  plant_sparse("a", 2 * int64_t{kChunkBytes});
  plant("b", "x");

  const auto scanned = scan_while([&] {
    std::ofstream(root_ / "a", std::ios::app) << "more";
    fs::remove(root_ / "b");
  });

  ASSERT_FALSE(scanned);
  EXPECT_EQ(scanned.error().code, ErrorCode::kConflict);
  EXPECT_EQ(base::faults_of(scanned),
            (Texts{"'a' changed while it was read", "'b' changed while it was read"}));
}

TEST_F(DuringTheScan, AFolderReplacedByALinkIsNotFollowed) {
  plant("a", "x");
  plant("d/secret", "mine");
  fs::create_directory(work_ / "outside");
  fs::create_hard_link(root_ / "d/secret", work_ / "outside/secret");

  const auto scanned = scan_while([&] {
    fs::remove_all(root_ / "d");
    fs::create_directory_symlink("../outside", root_ / "d");
  });

  EXPECT_EQ(base::faults_of(scanned), (Texts{"'d/secret' changed while it was read"}));
}

TEST_F(ScanFolder, AChunkIsReadAgainOnlyIfItIsUnchanged) {
  const fs::path file = plant("a", "before");
  const auto scanned = scan();
  ASSERT_TRUE(scanned);
  const ChunkSource source = scanned->chunks.at(0);
  EXPECT_EQ(*read_chunk(source), "before");

  std::ofstream(file) << "behind";
  EXPECT_EQ(read_chunk(source).error().code, ErrorCode::kConflict);
  std::ofstream(file) << "short";
  EXPECT_EQ(read_chunk(source).error().code, ErrorCode::kConflict);
  fs::remove(file);
  EXPECT_EQ(read_chunk(source).error().code, ErrorCode::kConflict);
  fs::create_symlink("/etc/passwd", file);
  EXPECT_EQ(read_chunk(source).error().what,
            "'" + file.string() + "' has changed since it was read");
}

}  // namespace
}  // namespace muster::workspace
