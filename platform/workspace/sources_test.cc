#include "workspace/sources.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::workspace {

using base::ErrorCode;

namespace {

class Sources : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_ / "src");
    std::filesystem::create_directory(folder_ / "git@host:x");
    ASSERT_TRUE(base::write_file(folder_ / "train.py", "x"));
    ASSERT_TRUE(base::write_file(folder_ / "a.ZIP", "x"));
  }
  base::TestFolder folder_;
};

TEST_F(Sources, KindsAreDistinguished) {
  for (const auto& [where, kind] : std::vector<std::pair<std::string, SourceKind>>{
           {".", SourceKind::kFolder},
           {"src", SourceKind::kFolder},
           {"./src", SourceKind::kFolder},
           {folder_.path().string(), SourceKind::kFolder},
           {"not-there", SourceKind::kFolder},
           {"git@host:x", SourceKind::kFolder},
           {"a.ZIP", SourceKind::kArchive},
           {"b.tar.gz", SourceKind::kArchive},
           {"b.tgz", SourceKind::kArchive},
           {"b.tar", SourceKind::kArchive},
           {"https://host/a.git", SourceKind::kRepository},
           {"git@host:y", SourceKind::kRepository}}) {
    const auto found = kind_of({.where = where}, folder_);
    ASSERT_TRUE(found) << where << ": " << found.error().to_string();
    EXPECT_EQ(*found, kind) << where;
  }
}

TEST_F(Sources, OtherTextsAreRefusedWithAdvice) {
  for (const auto& [source, words] : std::vector<std::pair<WorkspaceSource, std::string>>{
           {{.where = ""}, "is empty"},
           {{.where = "--upload-pack=x"}, "is an option, not a workspace"},
           {{.where = "-"}, "is an option, not a workspace"},
           {{.where = "train.py"}, "neither a folder nor an archive"},
           {{.where = "src", .ref = "main"}, "is not a repository"},
           {{.where = "s3://bucket/x"}, "aws s3 cp"},
           {{.where = "https://host/a.zip"}, "download it"},
           {{.where = "https://host/a"}, "git+https://host/a"},
           {{.where = "ext::sh -c id"}, "would run a program"},
           {{.where = "https://host/a.git", .ref = "-x"}, "is not a branch"},
           {{.where = "https://a:b@host/a.git"}, "git help credentials"}}) {
    const auto kind = kind_of(source, folder_);
    ASSERT_FALSE(kind) << source.where;
    EXPECT_EQ(kind.error().code, ErrorCode::kInvalid) << source.where;
    EXPECT_NE(kind.error().to_string().find(words), std::string::npos) << kind.error().to_string();
  }
}

TEST_F(Sources, AFolderIsUsedInPlace) {
  {
    const auto fetched = fetch({.where = "src"}, folder_, 1 << 20);
    ASSERT_TRUE(fetched) << fetched.error().to_string();
    EXPECT_EQ(fetched->folder, folder_ / "src");
    EXPECT_TRUE(fetched->own.empty());
  }
  EXPECT_TRUE(std::filesystem::exists(folder_ / "src"));
}

TEST_F(Sources, AMissingSourceIsReportedWithItsFullPath) {
  for (const std::string where : {"nothing", "nothing.zip"}) {
    const auto fetched = fetch({.where = where}, folder_, 1 << 20);
    ASSERT_FALSE(fetched);
    EXPECT_EQ(fetched.error().code, ErrorCode::kNotFound);
    EXPECT_NE(fetched.error().to_string().find((folder_ / where).string()), std::string::npos);
  }
}

}  // namespace
namespace {

struct Item {
  std::string name;
  std::string content;
  mode_t mode = S_IFREG | 0644;
  std::string symlink;
  std::string hardlink;
};

enum class Format { kZip, kTarGz };

/// An archive with arbitrary entries: libarchive writes whatever it is given.
void pack_archive(const std::filesystem::path& file, Format format,
                  const std::vector<Item>& items) {
  archive* const out = ::archive_write_new();
  if (format == Format::kZip) {
    ::archive_write_set_format_zip(out);
  } else {
    ::archive_write_set_format_pax_restricted(out);
    ::archive_write_add_filter_gzip(out);
  }
  ASSERT_EQ(::archive_write_open_filename(out, file.c_str()), ARCHIVE_OK);
  for (const Item& item : items) {
    archive_entry* const entry = ::archive_entry_new();
    ::archive_entry_set_pathname(entry, item.name.c_str());
    ::archive_entry_set_mode(entry, item.mode);
    if (!item.symlink.empty()) ::archive_entry_set_symlink(entry, item.symlink.c_str());
    if (!item.hardlink.empty()) ::archive_entry_set_hardlink(entry, item.hardlink.c_str());
    const bool has_content = S_ISREG(item.mode) && item.hardlink.empty();
    ::archive_entry_set_size(entry, has_content ? static_cast<int64_t>(item.content.size()) : 0);
    ASSERT_GE(::archive_write_header(out, entry), ARCHIVE_WARN) << ::archive_error_string(out);
    if (has_content) ::archive_write_data(out, item.content.data(), item.content.size());
    ::archive_entry_free(entry);
  }
  ASSERT_EQ(::archive_write_close(out), ARCHIVE_OK);
  ::archive_write_free(out);
}

class ArchiveSource : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(into_); }

  Result<void> unpack(Format format, const std::vector<Item>& items, int64_t most = 1 << 20) {
    pack_archive(file_, format, items);
    return unpack_archive(file_, into_, most);
  }
  std::string content(const std::string& name) const {
    auto text = base::read_file(into_ / name);
    return text ? *text : "(" + text.error().what + ")";
  }
  bool nothing_unpacked() const { return std::filesystem::is_empty(into_); }
  int64_t bytes_unpacked() const {
    int64_t bytes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(into_)) {
      if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
    }
    return bytes;
  }

  base::TestFolder folder_;
  // The path for libarchive's output must not contain links.
  const std::filesystem::path into_ = std::filesystem::canonical(folder_.path()) / "into";
  const std::filesystem::path file_ = folder_ / "a.archive";
};

TEST_F(ArchiveSource, FilesFoldersAndLinksAreUnpackedUnchanged) {
  for (const Format format : {Format::kZip, Format::kTarGz}) {
    const auto unpacked = unpack(format, {{"./", "", S_IFDIR | 0755},
                                          {"src/", "", S_IFDIR | 0700},
                                          {"src/train.py", "print()"},
                                          {"./run.sh", "#!/bin/sh", S_IFREG | 0750},
                                          {"deep//in/here", "x"},
                                          {"empty", ""},
                                          {"link", "", S_IFLNK | 0777, "src/train.py"}});

    ASSERT_TRUE(unpacked) << unpacked.error().to_string();
    EXPECT_EQ(content("src/train.py"), "print()");
    EXPECT_EQ(content("deep/in/here"), "x");
    EXPECT_EQ(content("empty"), "");
    EXPECT_EQ(std::filesystem::read_symlink(into_ / "link"), "src/train.py");
    struct stat status{};
    ASSERT_EQ(::stat((into_ / "run.sh").c_str(), &status), 0);
    EXPECT_NE(status.st_mode & S_IXUSR, 0U);
    ASSERT_EQ(::stat((into_ / "src/train.py").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & S_IXUSR, 0U);
    std::filesystem::remove_all(into_);
    std::filesystem::create_directory(into_);
  }
}

TEST_F(ArchiveSource, NamesKeepTheirBytesInAnyLocale) {
  for (const Format format : {Format::kZip, Format::kTarGz}) {
    const auto unpacked = unpack(format, {{"gr\xc3\xbc\xc3\x9f\x65", "1"}, {"two\nlines", "2"}});

    ASSERT_TRUE(unpacked) << unpacked.error().to_string();
    EXPECT_EQ(content("gr\xc3\xbc\xc3\x9f\x65"), "1");
    EXPECT_EQ(content("two\nlines"), "2");
  }
}

TEST_F(ArchiveSource, AHardLinkWithinItIsKept) {
  const auto unpacked =
      unpack(Format::kTarGz, {{"a", "same"}, {.name = "sub/b", .hardlink = "./a"}});

  ASSERT_TRUE(unpacked) << unpacked.error().to_string();
  EXPECT_EQ(content("sub/b"), "same");
}

TEST_F(ArchiveSource, AllEntriesThatLeadOutAreNamedAndNothingIsUnpacked) {
  const std::vector<Item> items{{"fine", "x"},
                                {"../evil", "x"},
                                {"/etc/evil", "x"},
                                {"a/../../evil", "x"},
                                {"out", "", S_IFLNK | 0777, "../secret"},
                                {"absolute", "", S_IFLNK | 0777, "/etc/passwd"},
                                {.name = "hard", .hardlink = "../secret"},
                                {"device", "", S_IFCHR | 0600},
                                {"pipe", "", S_IFIFO | 0600}};

  const auto unpacked = unpack(Format::kTarGz, items);

  ASSERT_FALSE(unpacked);
  EXPECT_EQ(unpacked.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(unpacked.error().faults.size(), items.size() - 1) << unpacked.error().to_string();
  EXPECT_TRUE(nothing_unpacked());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "evil"));
}

TEST_F(ArchiveSource, NothingIsWrittenThroughALink) {
  std::filesystem::create_directory(folder_ / "secret");
  static_cast<void>(
      unpack(Format::kTarGz,
             {{"sub/x", "1"}, {"a", "", S_IFLNK | 0777, "sub"}, {"a/../../secret/evil", "2"}}));
  static_cast<void>(
      unpack(Format::kTarGz, {{"a", "", S_IFLNK | 0777, "../secret"}, {"a/evil", "2"}}));

  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "secret"));
}

TEST_F(ArchiveSource, ABombIsStoppedAtTheLimit) {
  const std::string zeros(size_t{64} << 20, '\0');

  for (const Format format : {Format::kZip, Format::kTarGz}) {
    const auto unpacked = unpack(format, {{"small", "x"}, {"zeros", zeros}});

    ASSERT_FALSE(unpacked);
    EXPECT_EQ(unpacked.error().code, ErrorCode::kInvalid);
    EXPECT_NE(unpacked.error().what.find("more than 1 MiB"), std::string::npos)
        << unpacked.error().what;
    EXPECT_TRUE(nothing_unpacked());
  }
}

TEST_F(ArchiveSource, ABombThatDeclaresAWrongSizeIsStoppedAtTheLimit) {
  const uint32_t size = 8 << 20;
  pack_archive(file_, Format::kZip, {{"zeros", std::string(size, '\0')}});
  std::string bytes = *base::read_file(file_);
  const std::string true_size{'\0', '\0', '\x80', '\0'};  // least significant byte first
  int changed = 0;
  for (size_t at = bytes.find(true_size); at != std::string::npos; at = bytes.find(true_size)) {
    bytes.replace(at, true_size.size(), std::string{'\x0a', '\0', '\0', '\0'});
    ++changed;
  }
  ASSERT_GT(changed, 0);
  ASSERT_TRUE(base::write_file(file_, bytes));

  const auto unpacked = unpack_archive(file_, into_, 1 << 20);

  ASSERT_FALSE(unpacked);
  EXPECT_EQ(unpacked.error().code, ErrorCode::kInvalid) << unpacked.error().to_string();
  EXPECT_LE(bytes_unpacked(), 1 << 20);
}

TEST_F(ArchiveSource, OtherDataAndTruncatedArchivesAreRefusedByName) {
  pack_archive(file_, Format::kTarGz, {{"a", std::string(100'000, 'x')}, {"b", "y"}});
  const std::string whole = *base::read_file(file_);
  for (const std::string& bytes :
       {std::string("not an archive at all"), std::string(), whole.substr(0, whole.size() / 2)}) {
    ASSERT_TRUE(base::write_file(file_, bytes));
    const auto unpacked = unpack_archive(file_, into_, 1 << 20);
    ASSERT_FALSE(unpacked) << bytes.size();
    EXPECT_EQ(unpacked.error().code, ErrorCode::kInvalid);
    EXPECT_NE(unpacked.error().what.find(file_.string()), std::string::npos);
  }
}

TEST_F(ArchiveSource, TheFolderIsRemovedWithTheFetched) {
  pack_archive(folder_ / "a.zip", Format::kZip, {{"train.py", "x"}});
  std::filesystem::path own;
  {
    const auto fetched = fetch({.where = "a.zip"}, folder_, 1 << 20);
    ASSERT_TRUE(fetched) << fetched.error().to_string();
    own = fetched->own;
    EXPECT_EQ(*base::read_file(fetched->folder / "train.py"), "x");
  }
  EXPECT_FALSE(own.empty());
  EXPECT_FALSE(std::filesystem::exists(own));
}

}  // namespace
}  // namespace muster::workspace
