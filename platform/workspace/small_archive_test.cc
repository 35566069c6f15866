#include "workspace/small_archive.h"

#include <gtest/gtest.h>

#include <ostream>

namespace muster::workspace {

void PrintTo(const ArchiveEntry& entry, std::ostream* out) {
  *out << entry.path << " mode " << entry.mode << " of " << entry.uid << ":" << entry.gid
       << " with " << entry.content.size() << " bytes, link '" << entry.link << "'";
}

namespace {

using base::ErrorCode;
using Entries = std::vector<ArchiveEntry>;

ArchiveEntry archive_file(std::string path, std::string content, mode_t mode = 0600) {
  return {.path = std::move(path), .content = std::move(content), .mode = mode, .link = {}};
}

ArchiveEntry archive_folder(std::string path, mode_t mode) {
  return {.path = std::move(path), .content = {}, .mode = mode, .is_folder = true, .link = {}};
}

TEST(SmallArchive, ReadsBackUnchanged) {
  ArchiveEntry owned = archive_file("muster/task/plan", std::string("a\0b\xff", 4), 0640);
  owned.uid = 1000;
  owned.gid = 200'000;
  ArchiveEntry link = archive_file("etc/ssh/ssh_config", "", 0777);
  link.link = "/generated/ssh_config";
  const Entries entries{
      archive_folder("muster", 0755), archive_folder("muster/task", 0700), owned, link,
      archive_file("empty", ""),      archive_file("bin/set", "x", 04755)};

  const auto read = read_archive(make_archive(entries), 100);

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, entries);
}

TEST(SmallArchive, AcceptsLongNamesWithAnyBytes) {
  const Entries entries{archive_file(std::string(300, 'd') + "/" + std::string(200, 'f'), "long"),
                        archive_file("caf\xc3\xa9", "utf-8"), archive_file("caf\xe9", "latin-1")};

  const auto read = read_archive(make_archive(entries), 100);

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, entries);
}

TEST(SmallArchive, KeepsALargeFile) {
  std::string content(3 << 20, '\0');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7 + (i >> 9U));

  const auto read = read_archive(make_archive({archive_file("large", content)}), content.size());

  ASSERT_TRUE(read) << read.error().to_string();
  ASSERT_EQ(read->size(), 1U);
  EXPECT_EQ(read->front().content, content);
}

TEST(SmallArchive, NormalisesPathsWithDotsAndSlashes) {
  const auto read = read_archive(
      make_archive({archive_folder("./etc/", 0755), archive_file("./etc/passwd", "p")}), 100);

  ASSERT_TRUE(read) << read.error().to_string();
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ(read->at(0).path, "etc");
  EXPECT_EQ(read->at(1).path, "etc/passwd");
}

TEST(SmallArchive, EqualEntriesGiveEqualBytes) {
  const Entries entries{archive_folder("a", 0700), archive_file("a/b", "c")};
  EXPECT_EQ(make_archive(entries), make_archive(entries));
}

TEST(SmallArchive, NoEntriesGiveAnEmptyArchive) {
  const auto read = read_archive(make_archive({}), 0);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_TRUE(read->empty());
}

TEST(SmallArchive, RefusesMoreContentThanAllowed) {
  const std::string tar = make_archive({archive_file("a", "12345"), archive_file("b", "67890")});

  EXPECT_TRUE(read_archive(tar, 10));
  const auto read = read_archive(tar, 9);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(read.error().what, "the archive contains more than 9 bytes");
}

TEST(SmallArchive, RefusesOtherData) {
  const auto read = read_archive(std::string(2048, 'x'), 100);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
}

TEST(SmallArchive, RefusesATruncatedArchive) {
  const std::string tar = make_archive({archive_file("a", std::string(5000, 'a'))});

  const auto read = read_archive(std::string_view(tar).substr(0, 3000), 10'000);

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace muster::workspace
