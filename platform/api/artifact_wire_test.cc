#include "api/artifact_wire.h"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

const base::Time kThen{std::chrono::seconds{1'700'000'000}};

TEST(ArtifactWire, APageReadsBackAsItWas) {
  const ArtifactPage page{
      .artifacts = {{.path = "model.pt", .bytes = 12, .modified = kThen, .sha256 = "ab"},
                    {.path = "two\nlines \x1b[31m\xff", .bytes = 0, .modified = kThen},
                    {.path = "latest", .kind = Artifact::Kind::kLink, .modified = kThen}},
      .truncated = true};

  const auto read = artifacts_from_json(artifacts_to_json(page));

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, page);
}

TEST(ArtifactWire, LooksLikeThis) {
  EXPECT_EQ(artifacts_to_json({}), R"({"artifacts":[]})");
  EXPECT_EQ(artifacts_to_json({.artifacts = {{.path = "a\xff", .bytes = 1, .modified = kThen}}}),
            R"({"artifacts":[{"path":{"base64":"Yf8="},"kind":"file","bytes":1,)"
            R"("modified":"2023-11-14T22:13:20.000000000Z"}]})");
}

TEST(ArtifactWire, AQueryReadsBackAsItWas) {
  const auto read = artifact_query_from_parameters(
      artifact_query_to_parameters({.checksums = true, .prefix = "a/\xff", .after = "a/b\nc"}));

  ASSERT_TRUE(read);
  EXPECT_TRUE(read->checksums);
  EXPECT_EQ(read->prefix, "a/\xff");
  EXPECT_EQ(read->after, "a/b\nc");
}

TEST(ArtifactWire, EveryFaultOfAQueryIsTold) {
  const auto read = artifact_query_from_parameters({{"checksums", "yes"}, {"perfix", "a"}});

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().faults.size(), 2U);
}

}  // namespace
}  // namespace muster::api
