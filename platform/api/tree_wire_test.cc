#include "api/tree_wire.h"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

TEST(TreeWire, ATreeComesBackAsItWas) {
  const TreeInfo tree{.id = std::string(64, 'a'), .bytes = int64_t{3} << 40, .files = 12};

  const auto back = tree_from_json(tree_to_json(tree));

  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(*back, tree);
}

TEST(TreeWire, IdsComeBackInTheirOrder) {
  const std::vector<std::string> ids{"b", "a", "b"};

  const auto back = chunk_ids_from_json(chunk_ids_to_json(ids));

  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(*back, ids);
  EXPECT_EQ(chunk_ids_from_json(R"({"chunks": []})")->size(), 0U);
}

TEST(TreeWire, WhatIsNoListOfIdsIsRefused) {
  for (const std::string_view text : {"", "{}", "[]", R"({"chunks": "a"})", R"({"chunks": [1]})",
                                      R"({"chunks": [], "more": 1})"}) {
    const auto ids = chunk_ids_from_json(text);
    ASSERT_FALSE(ids) << text;
    EXPECT_EQ(ids.error().code, base::ErrorCode::kInvalid) << text;
  }
}

TEST(TreeWire, ChunksComeBackWithAnyBytesAndAnyLength) {
  const std::vector<std::string> contents{"", std::string("\0\n\xff", 3), std::string(70'000, 'x')};
  std::string body;
  for (const std::string& content : contents) append_chunk(body, content);

  const auto chunks = chunks_in(body);

  ASSERT_TRUE(chunks) << chunks.error().to_string();
  EXPECT_EQ(std::vector<std::string>(chunks->begin(), chunks->end()), contents);
  EXPECT_EQ(chunks_in("")->size(), 0U);
}

TEST(TreeWire, ABodyThatIsCutOffAnywhereWithinAChunkIsRefused) {
  std::string body;
  append_chunk(body, "abc");
  const size_t first = body.size();
  append_chunk(body, "defg");

  for (size_t bytes = 1; bytes < body.size(); ++bytes) {
    EXPECT_EQ(chunks_in(body.substr(0, bytes)).ok(), bytes == first) << bytes;
  }
  EXPECT_EQ(chunks_in("\xff\xff\xff\xff").error().code, base::ErrorCode::kInvalid);
}

}  // namespace
}  // namespace muster::api
