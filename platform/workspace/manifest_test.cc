#include "workspace/manifest.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster::workspace {
namespace {

using namespace std::string_literals;

constexpr size_t kLargestPath = kMostPathBytes;

ManifestEntry file_entry(std::string path, int64_t bytes = 0, bool executable = false) {
  ManifestEntry entry{.path = std::move(path), .executable = executable, .bytes = bytes};
  for (size_t i = 0; i < chunk_count(bytes); ++i) entry.chunks.push_back(chunk_id("x"));
  return entry;
}

ManifestEntry folder_entry(std::string path) {
  return {.kind = ManifestEntry::Kind::kFolder, .path = std::move(path)};
}

ManifestEntry link(std::string path, std::string to) {
  return {.kind = ManifestEntry::Kind::kLink, .path = std::move(path), .link = std::move(to)};
}

/// The fault, without the common beginning of all such errors.
std::string fault_of(const std::string& text) {
  const auto decoded = decode_manifest(text);
  if (decoded) return "nothing";
  EXPECT_EQ(decoded.error().code, base::ErrorCode::kInvalid);
  return decoded.error().what.substr("this is not a list of files: "s.size());
}

std::string fault_of(std::vector<ManifestEntry> entries) {
  return fault_of(encode({.entries = std::move(entries)}));
}

TEST(Manifest, ReadsBackUnchanged) {
  const Manifest tree{{file_entry("a\nb", 5), file_entry("a-b", 0, true), folder_entry("d\xff"),
                       file_entry("d\xff/x", int64_t{kChunkBytes} * 2 + 1),
                       link("d\xff/y", "../a\nb"), folder_entry("empty")}};

  const auto decoded = decode_manifest(encode(tree));

  ASSERT_TRUE(decoded) << decoded.error().to_string();
  EXPECT_EQ(*decoded, tree);
  EXPECT_EQ(tree.bytes(), 2 * int64_t{kChunkBytes} + 6);
  EXPECT_EQ(tree.files(), 3U);
}

TEST(Manifest, HasTheIdOfItsText) {
  const std::string empty = encode({});

  EXPECT_EQ(empty, "muster-tree 1\n");
  // Computed with sha256sum.
  EXPECT_EQ(tree_id(empty), "ba40f6bb8c93fd29957fba174373a8eeb0b345493b76d1187a0c3dbdfab1d4f7");
  EXPECT_EQ(chunk_id("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(encode({{folder_entry("d"), file_entry("d/f", 1), link("l", "d")}}),
            "muster-tree 1\nd d\0\nf d/f\0"s + "1 " + chunk_id("x") + "\nl l\0d\0\n"s);
}

TEST(Manifest, IsRefusedIfAPathLeadsOutOfTheTree) {
  for (const std::string path :
       {"..", "../x", "/etc/passwd", "a/../b", ".", "./a", "a/", "a//b", "", "a/..", "a/."}) {
    EXPECT_EQ(fault_of({folder_entry("a"), file_entry(path)}),
              "the path '" + path + "' is not valid within a tree");
  }
}

TEST(Manifest, IsRefusedIfAPathIsTooLongOrTooDeep) {
  std::string deep = "a";
  for (size_t i = 0; i < kMostDepth; ++i) deep += "/a";
  EXPECT_TRUE(is_tree_path(deep));
  EXPECT_FALSE(is_tree_path(deep + "/a"));
  EXPECT_TRUE(is_tree_path(std::string(255, 'a')));
  EXPECT_FALSE(is_tree_path(std::string(256, 'a')));
  std::string wide = std::string(250, 'a');
  while (wide.size() <= kLargestPath) wide += "/" + std::string(250, 'a');
  EXPECT_FALSE(is_tree_path(wide));
  EXPECT_TRUE(is_tree_path(wide.substr(0, kLargestPath)));
}

TEST(Manifest, IsRefusedWithTooManyEntries) {
  std::vector<ManifestEntry> entries;
  for (size_t i = 0; i < kMostEntries; ++i) {
    entries.push_back({.kind = ManifestEntry::Kind::kFile, .path = std::to_string(1'000'000 + i)});
  }
  EXPECT_TRUE(decode_manifest(encode({entries})));
  entries.push_back({.kind = ManifestEntry::Kind::kFile, .path = "one more"});
  EXPECT_EQ(fault_of({entries}), "it has more than 200,000 entries");
}

TEST(Manifest, IsRefusedWithDuplicateOrUnorderedEntries) {
  EXPECT_EQ(fault_of({file_entry("a"), file_entry("a")}), "the path 'a' is out of order");
  EXPECT_EQ(fault_of({file_entry("b"), file_entry("a")}), "the path 'a' is out of order");
  EXPECT_EQ(fault_of({folder_entry("a"), file_entry("a/b"), file_entry("a-b")}),
            "the path 'a-b' is out of order");
  EXPECT_EQ(fault_of({file_entry("\xff"), file_entry("a")}), "the path 'a' is out of order");
}

TEST(Manifest, IsRefusedIfAnEntryIsBelowAFile) {
  EXPECT_EQ(fault_of({file_entry("a"), file_entry("a/b")}), "'a/b' is in no folder of the tree");
  EXPECT_EQ(fault_of({link("a", "b"), file_entry("a/b")}), "'a/b' is in no folder of the tree");
  EXPECT_EQ(fault_of({file_entry("a/b")}), "'a/b' is in no folder of the tree");
}

TEST(Manifest, IsRefusedIfALinkLeadsOut) {
  EXPECT_EQ(fault_of({link("a", "/etc")}), "the link 'a' leads out of the tree, to '/etc'");
  EXPECT_EQ(fault_of({link("a", "..")}), "the link 'a' leads out of the tree, to '..'");
}

TEST(Manifest, IsRefusedIfChunksDoNotMatchTheSize) {
  ManifestEntry entry = file_entry("a", 5);
  entry.chunks.clear();
  EXPECT_EQ(fault_of({entry}), "'a' lacks chunks");
  entry = file_entry("a", 5);
  entry.bytes = 0;
  EXPECT_EQ(fault_of({entry}), "there is more text after the entry 'a'");
  entry.bytes = int64_t{kChunkBytes} + 1;
  EXPECT_EQ(fault_of({entry}), "'a' lacks chunks");
  entry.bytes = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(fault_of({entry}), "'a' lacks chunks");
  entry.bytes = -1;
  EXPECT_EQ(fault_of({entry}), "the size of 'a' is not a number");
  entry = file_entry("a", 5);
  entry.chunks[0][0] = 'G';
  EXPECT_EQ(fault_of({entry}), "'a' lacks chunks");
}

TEST(Manifest, IsRefusedIfItsTextIsNotInTheNormalForm) {
  const std::string heading = "muster-tree 1\n";
  EXPECT_EQ(fault_of(""), "it does not begin with its header");
  EXPECT_EQ(fault_of("muster-tree 2\n"), "it does not begin with its header");
  EXPECT_EQ(fault_of(heading + "\n"), "an entry has an unknown kind");
  EXPECT_EQ(fault_of(heading + "q a\0\n"s), "an entry has an unknown kind");
  EXPECT_EQ(fault_of(heading + "f a"), "it ends within an entry");
  EXPECT_EQ(fault_of(heading + "f a\0"s), "the size of 'a' is not a number");
  EXPECT_EQ(fault_of(heading + "f a\0"s + "00\n"), "the size of 'a' is not a number");
  EXPECT_EQ(fault_of(heading + "f a\0"s + "0"), "there is more text after the entry 'a'");
  EXPECT_EQ(fault_of(heading + "d a\0 \n"s), "there is more text after the entry 'a'");
  EXPECT_EQ(fault_of(heading + "l a\0b\n"s), "it ends within an entry");
}

TEST(Manifest, IsRefusedIfALineIsTruncated) {
  const std::string whole = encode({{folder_entry("d"), file_entry("d/f", 1), link("l", "d")}});
  std::vector<size_t> accepted;
  for (size_t length = 0; length < whole.size(); ++length) {
    if (decode_manifest(whole.substr(0, length))) accepted.push_back(length);
  }
  // Only at the ends of lines it is valid: a smaller tree with another id.
  EXPECT_EQ(accepted, (std::vector<size_t>{14, 19, whole.find("l l")}));
}

TEST(Manifest, WithTwoHundredThousandEntriesReadsBack) {
  Manifest tree{{folder_entry("data")}};
  for (int i = 100'001; i < 300'000; ++i) {
    tree.entries.push_back(file_entry("data/" + std::to_string(i), 12));
  }

  const auto decoded = decode_manifest(encode(tree));

  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->entries.size(), kMostEntries);
  EXPECT_EQ(*decoded, tree);
}

TEST(Link, IsInsideIfItDoesNotClimbAboveTheRoot) {
  EXPECT_TRUE(link_stays_inside("a", "b"));
  EXPECT_TRUE(link_stays_inside("a", "."));
  EXPECT_TRUE(link_stays_inside("d/a", ".."));
  EXPECT_TRUE(link_stays_inside("d/a", "../b/c"));
  EXPECT_TRUE(link_stays_inside("d/e/a", "./..//../b/"));
  EXPECT_FALSE(link_stays_inside("a", ".."));
  EXPECT_FALSE(link_stays_inside("d/a", "../.."));
  EXPECT_FALSE(link_stays_inside("d/a", "../../d/a"));
  EXPECT_FALSE(link_stays_inside("a", "/b"));
  EXPECT_FALSE(link_stays_inside("a", ""));
  EXPECT_FALSE(link_stays_inside("a", "b\0c"s));
}

TEST(Link, IsRefusedIfItLeadsOutThroughAnotherLink) {
  // up -> .. is the root; "up/.." is the root's parent, although its text suggests "d".
  EXPECT_TRUE(link_stays_inside("d/up", ".."));
  EXPECT_FALSE(link_stays_inside("d/out", "up/.."));
}

TEST(Chunks, HaveTheSameLengthExceptTheLast) {
  const std::string content(kChunkBytes * 2 + 7, 'x');

  const auto chunks = cut_into_chunks(content);

  ASSERT_EQ(chunks.size(), chunk_count(static_cast<int64_t>(content.size())));
  for (size_t i = 0; i < chunks.size(); ++i) {
    EXPECT_EQ(chunks[i].size(), chunk_bytes(static_cast<int64_t>(content.size()), i));
  }
  EXPECT_EQ(chunks.back().size(), 7U);
  EXPECT_TRUE(cut_into_chunks("").empty());
  EXPECT_EQ(chunk_count(kChunkBytes), 1U);
}

TEST(Id, HasSixtyFourHexadecimalDigits) {
  EXPECT_TRUE(is_id(chunk_id("")));
  EXPECT_FALSE(is_id(""));
  EXPECT_FALSE(is_id(std::string(63, '0')));
  EXPECT_FALSE(is_id(std::string(64, 'A')));
  EXPECT_FALSE(is_id(std::string(62, '0') + "/."));
}

}  // namespace
}  // namespace muster::workspace
