#include "api/file_wire.h"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

const base::Time kThen{std::chrono::seconds{1'700'000'000}};

TEST(ArtifactWire, APageReadsBackUnchanged) {
  const ArtifactPage page{
      .artifacts = {{.path = "model.pt", .bytes = 12, .modified = kThen, .sha256 = "ab"},
                    {.path = "two\nlines \x1b[31m\xff", .bytes = 0, .modified = kThen},
                    {.path = "latest", .kind = Artifact::Kind::kLink, .modified = kThen}},
      .truncated = true};

  const auto read = artifacts_from_json(artifacts_to_json(page));

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, page);
}

TEST(ArtifactWire, HasTheDocumentedShape) {
  EXPECT_EQ(artifacts_to_json({}), R"({"artifacts":[]})");
  EXPECT_EQ(artifacts_to_json({.artifacts = {{.path = "a\xff", .bytes = 1, .modified = kThen}}}),
            R"({"artifacts":[{"path":{"base64":"Yf8="},"kind":"file","bytes":1,)"
            R"("modified":"2023-11-14T22:13:20.000000000Z"}]})");
}

TEST(ArtifactWire, AQueryReadsBackUnchanged) {
  const auto read = artifact_query_from_parameters(
      artifact_query_to_parameters({.checksums = true, .prefix = "a/\xff", .after = "a/b\nc"}));

  ASSERT_TRUE(read);
  EXPECT_TRUE(read->checksums);
  EXPECT_EQ(read->prefix, "a/\xff");
  EXPECT_EQ(read->after, "a/b\nc");
}

TEST(ArtifactWire, EveryFaultOfAQueryIsReported) {
  const auto read = artifact_query_from_parameters({{"checksums", "yes"}, {"perfix", "a"}});

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().faults.size(), 2U);
}

}  // namespace
namespace {

TEST(TreeWire, ATreeReadsBackUnchanged) {
  const TreeInfo tree{.id = std::string(64, 'a'), .bytes = int64_t{3} << 40, .files = 12};

  const auto back = tree_from_json(tree_to_json(tree));

  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(*back, tree);
}

TEST(TreeWire, IdsReadBackInOrder) {
  const std::vector<std::string> ids{"b", "a", "b"};

  const auto back = chunk_ids_from_json(chunk_ids_to_json(ids));

  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(*back, ids);
  EXPECT_EQ(chunk_ids_from_json(R"({"chunks": []})")->size(), 0U);
}

TEST(TreeWire, InvalidListsOfIdsAreRefused) {
  for (const std::string_view text : {"", "{}", "[]", R"({"chunks": "a"})", R"({"chunks": [1]})",
                                      R"({"chunks": [], "more": 1})"}) {
    const auto ids = chunk_ids_from_json(text);
    ASSERT_FALSE(ids) << text;
    EXPECT_EQ(ids.error().code, base::ErrorCode::kInvalid) << text;
  }
}

TEST(TreeWire, ChunksWithAnyBytesAndAnyLengthReadBack) {
  const std::vector<std::string> contents{"", std::string("\0\n\xff", 3), std::string(70'000, 'x')};
  std::string body;
  for (const std::string& content : contents) append_chunk(body, content);

  const auto chunks = chunks_in(body);

  ASSERT_TRUE(chunks) << chunks.error().to_string();
  EXPECT_EQ(std::vector<std::string>(chunks->begin(), chunks->end()), contents);
  EXPECT_EQ(chunks_in("")->size(), 0U);
}

TEST(TreeWire, ABodyThatEndsWithinAChunkIsRefused) {
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
