#include "workspace/tar_unpack.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "base/test_folder.h"
#include "workspace/test_tar.h"

namespace muster::workspace {

namespace fs = std::filesystem;

namespace {

using base::Error;
using base::ErrorCode;
using base::TestFolder;

std::string file_tar() {
  return TarOf().file("name", "new").bytes();
}
std::string folder_tar() {
  return TarOf().folder("name").file("name/f", "new").bytes();
}
std::string content_tar() {
  return TarOf().folder("./").file("./f", "new").bytes();
}

// --- where the root goes

struct TargetCase {
  std::string target;
  std::string tar;
  Lines tree;       ///< everything that exists then
  ErrorCode error;  ///< if the tree does not change
};

constexpr ErrorCode kNone = ErrorCode::kInternal;

TEST(UnpackTar, PutsTheRootWhereCpWould) {
  const Lines before{"dir/ 755", "dir/old 644 'old'", "file 644 'old'"};
  const std::vector<TargetCase> cases{
      {"dir",
       file_tar(),
       {"dir/ 755", "dir/name 644 'new'", "dir/old 644 'old'", "file 644 'old'"},
       kNone},
      {"dir/",
       file_tar(),
       {"dir/ 755", "dir/name 644 'new'", "dir/old 644 'old'", "file 644 'old'"},
       kNone},
      {"dir/.",
       file_tar(),
       {"dir/ 755", "dir/name 644 'new'", "dir/old 644 'old'", "file 644 'old'"},
       kNone},
      {"dir",
       folder_tar(),
       {"dir/ 755", "dir/name/ 755", "dir/name/f 644 'new'", "dir/old 644 'old'", "file 644 'old'"},
       kNone},
      {"dir",
       content_tar(),
       {"dir/ 755", "dir/f 644 'new'", "dir/old 644 'old'", "file 644 'old'"},
       kNone},
      {"dir/.",
       content_tar(),
       {"dir/ 755", "dir/f 644 'new'", "dir/old 644 'old'", "file 644 'old'"},
       kNone},
      {"file", file_tar(), {"dir/ 755", "dir/old 644 'old'", "file 644 'new'"}, kNone},
      {"file", folder_tar(), before, ErrorCode::kConflict},
      {"file", content_tar(), before, ErrorCode::kConflict},
      {"file/", file_tar(), before, ErrorCode::kConflict},
      {"new",
       file_tar(),
       {"dir/ 755", "dir/old 644 'old'", "file 644 'old'", "new 644 'new'"},
       kNone},
      {"new",
       folder_tar(),
       {"dir/ 755", "dir/old 644 'old'", "file 644 'old'", "new/ 755", "new/f 644 'new'"},
       kNone},
      {"new",
       content_tar(),
       {"dir/ 755", "dir/old 644 'old'", "file 644 'old'", "new/ 755", "new/f 644 'new'"},
       kNone},
      {"new/", file_tar(), before, ErrorCode::kNotFound},
      {"new/",
       folder_tar(),
       {"dir/ 755", "dir/old 644 'old'", "file 644 'old'", "new/ 755", "new/f 644 'new'"},
       kNone},
      {"new/",
       content_tar(),
       {"dir/ 755", "dir/old 644 'old'", "file 644 'old'", "new/ 755", "new/f 644 'new'"},
       kNone},
      {"new/.", file_tar(), before, ErrorCode::kNotFound},
      {"new/.", folder_tar(), before, ErrorCode::kNotFound},
      {"new/.", content_tar(), before, ErrorCode::kNotFound},
      {"new/x", file_tar(), before, ErrorCode::kNotFound},
      {"new/..", folder_tar(), before, ErrorCode::kNotFound},
      {"file/x", file_tar(), before, ErrorCode::kConflict},
  };
  for (const TargetCase& one : cases) {
    const TestFolder folder;
    fs::create_directory(folder / "dir");
    write_text(folder / "dir/old", "old");
    write_text(folder / "file", "old");

    const Unpacked unpacked = unpack(one.tar, {.target = (folder / one.target).string()});

    EXPECT_EQ(tree_of(folder), one.tree) << one.target;
    EXPECT_EQ(bool(unpacked.totals), one.error == kNone) << one.target;
    if (unpacked.totals) continue;
    EXPECT_EQ(unpacked.totals.error().code, one.error) << one.target;
  }
}

TEST(UnpackTar, NamesAMissingFolderWithoutTheDotOfSeveralSources) {
  const TestFolder folder;
  const Unpacked unpacked = unpack(file_tar(), {.target = (folder / "new/.").string()});
  ASSERT_FALSE(unpacked.totals);
  EXPECT_EQ(unpacked.totals.error().what,
            "there is no folder '" + (folder / "new/").string() + "'");
}

TEST(UnpackTar, MergesIntoFoldersAndReplacesFilesOfTheSameName) {
  const TestFolder folder;
  fs::create_directories(folder / "name/sub");
  write_text(folder / "name/f", "old");
  write_text(folder / "name/kept", "kept");
  fs::create_hard_link(folder / "name/f", folder / "other name of f");

  ASSERT_TRUE(unpack(TarOf().folder("name").file("name/f", "new").folder("name/sub").bytes(),
                     {.target = folder.path()})
                  .totals);

  EXPECT_EQ(tree_of(folder), (Lines{"name/ 755", "name/f 644 'new'", "name/kept 644 'kept'",
                                    "name/sub/ 755", "other name of f 644 'old'"}));
}

TEST(UnpackTar, FollowsALinkToAFolderAndReplacesOtherLinks) {
  const TestFolder folder;
  fs::create_directory(folder / "dir");
  write_text(folder / "file", "old");
  fs::create_symlink("dir", folder / "to-dir");
  fs::create_symlink("file", folder / "to-file");

  ASSERT_TRUE(unpack(file_tar(), {.target = folder / "to-dir"}).totals);
  ASSERT_TRUE(unpack(file_tar(), {.target = folder / "to-file"}).totals);

  EXPECT_EQ(tree_of(folder), (Lines{"dir/ 755", "dir/name 644 'new'", "file 644 'old'",
                                    "to-dir -> dir", "to-file 644 'new'"}));
}

TEST(UnpackTar, CreatesNothingForAnEmptyTar) {
  const TestFolder folder;

  for (const std::string& tar : {std::string(), TarOf().bytes()}) {
    const Unpacked unpacked = unpack(tar, {.target = folder / "new"});
    ASSERT_TRUE(unpacked.totals) << unpacked.totals.error().what;
    EXPECT_EQ(*unpacked.totals, CopyTotals());
  }
  EXPECT_EQ(tree_of(folder), Lines());
}

// --- hostile tars

TEST(UnpackTar, AcceptsOnlyTheRequestedName) {
  const TestFolder folder;
  const std::vector<std::pair<std::string, std::string>> cases{
      {"name", TarOf().file(".bashrc", "evil").bytes()},
      {"name", TarOf().folder("./").file("./.bashrc", "evil").bytes()},
      {"name", TarOf().file("name2", "evil").bytes()},
      {"name", TarOf().file("name/x", "evil").bytes()},
      {"name", TarOf().link("name", "/etc").bytes()},
      {"name", TarOf().hard_link("name", "kept").bytes()},
      {"", TarOf().file("x", "evil").bytes()},
      {"", TarOf().folder("name").file("name/x", "evil").bytes()},
  };
  write_text(folder / "kept", "kept");
  for (const auto& [name, tar] : cases) {
    const Unpacked unpacked = unpack(tar, {.target = folder.path(), .name = name});
    ASSERT_FALSE(unpacked.totals) << name;
    EXPECT_EQ(unpacked.totals.error().code, ErrorCode::kInvalid);
  }
  EXPECT_EQ(tree_of(folder), Lines{"kept 644 'kept'"});
}

TEST(UnpackTar, StopsAtAnEntryThatLeadsElsewhere) {
  const TestFolder outside;
  write_text(outside / "kept", "kept");
  const std::string away = outside.path();
  const std::vector<std::string> names{
      "/" + away.substr(1) + "/x", "name/../x", "name/../../x", "../x", "x", "name2/x"};
  for (const std::string& name : names) {
    const TestFolder folder;

    const Unpacked unpacked =
        unpack(TarOf().folder("name").file(name, "evil").file("name/after", "").bytes(),
               {.target = folder.path()});

    ASSERT_FALSE(unpacked.totals) << name;
    EXPECT_EQ(unpacked.totals.error().what,
              "the copied data contains '" + name + "', which was not requested");
    EXPECT_EQ(tree_of(folder), Lines{"name/ 700"}) << name;
  }
  const TestFolder folder;
  const Unpacked linked =
      unpack(TarOf().folder("name").hard_link("name/x", "../" + away + "/kept").bytes(),
             {.target = folder.path()});
  ASSERT_FALSE(linked.totals);
  EXPECT_EQ(tree_of(outside), Lines{"kept 644 'kept'"});
}

TEST(UnpackTar, WritesThroughNoLinkFromTheTarOrTheFolder) {
  const TestFolder outside;
  const TestFolder folder;
  fs::create_directory(folder / "name");
  fs::create_symlink(outside.path(), folder / "name/was-there");

  const Unpacked unpacked = unpack(TarOf()
                                       .folder("name")
                                       .link("name/brought", outside.path())
                                       .file("name/brought/x", "evil")
                                       .folder("name/brought")
                                       .file("name/brought/y", "evil")
                                       .file("name/was-there/x", "evil")
                                       .hard_link("name/z", "name/was-there/x")
                                       .file("name/good", "good")
                                       .bytes(),
                                   {.target = folder.path()});

  ASSERT_TRUE(unpacked.totals);
  const std::string name = (folder / "name").string();
  EXPECT_EQ(unpacked.notes,
            (Lines{"failed: '" + name + "/brought/x' is below a path that is not a folder\n",
                   "failed: '" + name + "/brought' exists, and is not a folder\n",
                   "failed: '" + name + "/was-there/x' is below a path that is not a folder\n",
                   "failed: '" + name + "/was-there/x' is below a path that is not a folder\n"}));
  EXPECT_EQ(unpacked.totals->failed, 4U);
  EXPECT_EQ(tree_of(outside), Lines());
  EXPECT_EQ(text_of(folder / "name/good"), "good");
}

TEST(UnpackTar, CreatesNoDevicesAndKeepsNoSpecialModes) {
  const TestFolder folder;

  const Unpacked unpacked = unpack(
      TarOf().folder("name", 07777).device("name/zero").file("name/suid", "x", 06755).bytes(),
      {.target = folder.path()});

  ASSERT_TRUE(unpacked.totals);
  EXPECT_EQ(unpacked.notes, Lines{"failed: '" + (folder / "name/zero").string() +
                                  "' is neither a file nor a folder nor a link\n"});
  EXPECT_EQ(tree_of(folder), (Lines{"name/ 777", "name/suid 755 'x'"}));
}

TEST(UnpackTar, EscapesControlCharactersInReportedNames) {
  const TestFolder folder;

  const Unpacked unpacked =
      unpack(TarOf().file("\x1b[31m", "x").bytes(), {.target = folder.path(), .name = "name"});

  ASSERT_FALSE(unpacked.totals);
  EXPECT_EQ(unpacked.totals.error().what,
            "the copied data contains '\\x1b[31m', which was not requested");
}

// --- errors

TEST(UnpackTar, LeavesNoIncompleteFileWhereverItIsTruncated) {
  const std::string text(5000, 'x');
  const std::string tar = TarOf().folder("name").file("name/f", text).bytes();
  for (size_t cut = 0; cut < tar.size(); cut += 100) {
    const TestFolder folder;

    const Unpacked unpacked = unpack(tar.substr(0, cut), {.target = folder.path()});

    for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
      if (!entry.is_regular_file()) continue;
      EXPECT_EQ(entry.path(), folder / "name/f") << cut;
      EXPECT_EQ(text_of(entry.path()), text) << cut;
    }
    if (unpacked.totals) continue;
    // Less than a block cannot be recognised as a tar.
    constexpr size_t kBlock = 512;
    EXPECT_EQ(unpacked.totals.error().code,
              cut < kBlock ? ErrorCode::kInvalid : ErrorCode::kUnavailable)
        << cut << " " << unpacked.totals.error().what;
  }
}

TEST(UnpackTar, PassesOnTheErrorOfItsReaderAndLeavesNoIncompleteFile) {
  const TestFolder folder;
  write_text(folder / "name", "earlier");
  const std::string tar = TarOf().file("name", std::string(5000, 'x')).bytes();
  size_t reads = 0;
  const ReadTar read = [&]() -> base::Result<std::string_view> {
    if (++reads > 3) return Error{.code = ErrorCode::kTimeout, .what = "enough"};
    return std::string_view(tar).substr((reads - 1) * 1000, 1000);
  };

  const auto totals =
      unpack_tar(read, {.target = folder.path()}, {.on_note = [](const CopyNote&) {}});

  ASSERT_FALSE(totals);
  EXPECT_EQ(totals.error().what, "enough");
  EXPECT_EQ(tree_of(folder), Lines{"name 644 'earlier'"});
}

TEST(UnpackTar, DistinguishesATarFromOtherData) {
  const TestFolder folder;

  const Unpacked unpacked =
      unpack(std::string(5000, 'x'), {.target = folder.path(), .name = "name"});

  ASSERT_FALSE(unpacked.totals);
  EXPECT_EQ(unpacked.totals.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(tree_of(folder), Lines());
}

TEST(UnpackTar, ReportsFoldersInThePlaceOfFilesAndViceVersaAndUnpacksTheRest) {
  const TestFolder folder;
  fs::create_directories(folder / "name/file");
  write_text(folder / "name/folder", "old");

  const Unpacked unpacked = unpack(TarOf()
                                       .folder("name")
                                       .file("name/file", "new")
                                       .folder("name/folder")
                                       .file("name/folder/x", "new")
                                       .file("name/rest", "new")
                                       .bytes(),
                                   {.target = folder.path()});

  ASSERT_TRUE(unpacked.totals);
  const std::string name = (folder / "name").string();
  EXPECT_EQ(unpacked.notes, (Lines{"failed: '" + name + "/file' is a folder there\n",
                                   "failed: '" + name + "/folder' exists, and is not a folder\n"}));
  EXPECT_EQ(tree_of(folder),
            (Lines{"name/ 755", "name/file/ 755", "name/folder 644 'old'", "name/rest 644 'new'"}));
}

/// Limits the size of files.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  ~FileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  sighandler_t handler_;
};

TEST(UnpackTar, StopsAtAFileThatCannotBeWrittenAndRemovesIt) {
  const TestFolder folder;
  const std::string tar = TarOf()
                              .folder("name")
                              .file("name/small", "x")
                              .file("name/large", std::string(100'000, 'x'))
                              .bytes();
  Unpacked unpacked;
  {
    const FileLimit limit(10'000);
    unpacked = unpack(tar, {.target = folder.path()});
  }

  ASSERT_FALSE(unpacked.totals);
  EXPECT_EQ(unpacked.totals.error().what,
            "cannot write '" + (folder / "name/large").string() + "': File too large");
  EXPECT_EQ(tree_of(folder), (Lines{"name/ 700", "name/small 644 'x'"}));
}

}  // namespace
}  // namespace muster::workspace
