// The routes by which clients upload files, with a real store on disk.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "api/file_wire.h"
#include "api/wire.h"
#include "base/event_loop.h"
#include "base/fake_random.h"
#include "base/files.h"
#include "base/test_folder.h"
#include "engine/fake_engine.h"
#include "server/routes.h"
#include "store/memory_store.h"
#include "workspace/manifest.h"

namespace muster::server {
namespace {

using workspace::chunk_id;

constexpr const char* kChunks = "/v1/projects/default/chunks";
constexpr const char* kMissing = "/v1/projects/default/chunks/missing";

class TreeRoutes : public testing::Test {
 protected:
  TreeRoutes() {
    EXPECT_TRUE(controller_.recover());
    add_tree_routes(router_, controller_, trees_, clock_, background_);
  }

  /// Sends a request and runs the event loop until the answer arrives.
  http::Response ask(const std::string& method, const std::string& path,
                     const std::string& body = {}) {
    http::Response answer{.status = 0};
    router_.handle({.request = {.method = method, .path = path, .body = body},
                    .who = access::local_identity("ada"),
                    .id = "r1"},
                   [&](http::Response response) {
                     answer = std::move(response);
                     loop_.stop();
                   });
    loop_.run();
    return answer;
  }

  std::vector<std::string> missing(const std::vector<std::string>& ids) {
    const http::Response answer = ask("POST", kMissing, api::chunk_ids_to_json(ids));
    EXPECT_EQ(answer.status, 200) << answer.body;
    auto chunks = api::chunk_ids_from_json(answer.body);
    return chunks ? *chunks : std::vector<std::string>{};
  }

  base::TestFolder folder_;
  base::EventLoop loop_;
  base::Background background_{loop_};
  store::MemoryStore store_;
  engine::FakeEngine engine_{loop_};
  base::FakeClock clock_;
  base::FakeRandom random_;
  control::Controller controller_{
      {.loop = loop_, .store = store_, .engine = engine_, .clock = clock_, .random = random_},
      {.user = "ada", .has_tree = [this](const std::string& project, const std::string& tree) {
         return static_cast<bool>(trees_.info(project, tree));
       }}};
  workspace::TreeStore trees_{folder_ / "trees"};
  Router router_;
};

std::string body_of(const std::vector<std::string>& chunks) {
  std::string body;
  for (const std::string& chunk : chunks) api::append_chunk(body, chunk);
  return body;
}

std::string tree_path(const std::string& id) {
  return "/v1/projects/default/trees/" + id;
}

TEST_F(TreeRoutes, ATreeIsStoredOnceAllItsChunksHaveArrived) {
  const std::string content = "print()";
  const std::string manifest = workspace::encode(
      {.entries = {{.path = "train.py", .bytes = 7, .chunks = {chunk_id(content)}}}});
  const std::string id = workspace::tree_id(manifest);
  const std::vector<std::string> ids{chunk_id(content), chunk_id(manifest)};
  const std::string keep = api::chunk_ids_to_json({chunk_id(manifest)});

  EXPECT_EQ(ask("GET", tree_path(id)).status, 404);
  EXPECT_EQ(missing(ids), ids);
  EXPECT_EQ(ask("PUT", kChunks, body_of({manifest})).status, 204);
  EXPECT_EQ(missing(ids), std::vector<std::string>{chunk_id(content)});
  EXPECT_EQ(ask("PUT", tree_path(id), keep).status, 404) << "a chunk of a file is missing";
  EXPECT_EQ(ask("PUT", kChunks, body_of({content})).status, 204);

  const auto kept = api::tree_from_json(ask("PUT", tree_path(id), keep).body);
  ASSERT_TRUE(kept) << kept.error().to_string();
  EXPECT_EQ(*kept, (api::TreeInfo{.id = id, .bytes = 7, .files = 1}));
  EXPECT_EQ(*api::tree_from_json(ask("GET", tree_path(id)).body), *kept);
  EXPECT_TRUE(missing(ids).empty());
  EXPECT_EQ(ask("PUT", tree_path(id), keep).status, 200) << "again";
}

TEST_F(TreeRoutes, InvalidChunksAndIdsAreRefused) {
  EXPECT_EQ(ask("PUT", kChunks, "\x7f").status, 400);
  EXPECT_EQ(ask("PUT", kChunks, body_of({std::string(workspace::kChunkBytes + 1, 'x')})).status,
            400);
  EXPECT_EQ(ask("POST", kMissing, R"({"chunks": ["../../x"]})").status, 400);
  EXPECT_EQ(ask("POST", kMissing, "{").status, 400);
  EXPECT_GE(ask("GET", tree_path("..")).status, 400);
  EXPECT_EQ(ask("PUT", tree_path(std::string(64, 'a')), R"({"chunks": ["x"]})").status, 400);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "trees/default/trees"));
}

TEST_F(TreeRoutes, ATreeWhoseIdDiffersFromThatOfItsManifestIsRefused) {
  const std::string manifest = workspace::encode({});
  ASSERT_EQ(ask("PUT", kChunks, body_of({manifest})).status, 204);

  const http::Response answer =
      ask("PUT", tree_path(std::string(64, 'a')), api::chunk_ids_to_json({chunk_id(manifest)}));

  EXPECT_EQ(answer.status, 400) << answer.body;
}

TEST_F(TreeRoutes, AProjectThatDoesNotExistHasNoFiles) {
  EXPECT_EQ(ask("PUT", "/v1/projects/nobodys/chunks", body_of({"x"})).status, 404);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "trees/nobodys"));
}

TEST_F(TreeRoutes, AnEmptyListHasNoMissingChunksAndAnEmptyUploadIsRefused) {
  EXPECT_TRUE(missing({}).empty());
  EXPECT_EQ(ask("PUT", kChunks).status, 400) << "the body contains no chunk";
}

TEST_F(TreeRoutes, AnUploadIsStoredAlthoughItsClientHasDisconnected) {
  router_.handle({.request = {.method = "PUT", .path = kChunks, .body = body_of({"left behind"})},
                  .who = access::local_identity("ada"),
                  .id = "r1"},
                 [](const http::Response&) {});

  EXPECT_TRUE(missing({chunk_id("left behind")}).empty()) << "requests are processed in order";
}

TEST_F(TreeRoutes, FilesThatNoJobUsesAreLimitedAndCountedAgainAfterAMinute) {
  constexpr int64_t kBlock = 4096;
  trees_ = workspace::TreeStore(folder_ / "trees", {.unused_bytes = 3 * kBlock});
  const std::string content = "print()";
  const std::string manifest = workspace::encode(
      {.entries = {{.path = "train.py", .bytes = 7, .chunks = {chunk_id(content)}}}});
  const std::string id = workspace::tree_id(manifest);
  ASSERT_EQ(ask("PUT", kChunks, body_of({content, manifest, "third"})).status, 204);
  ASSERT_EQ(ask("PUT", tree_path(id), api::chunk_ids_to_json({chunk_id(manifest)})).status, 200);

  const http::Response refused = ask("PUT", kChunks, body_of({"fourth"}));

  EXPECT_EQ(refused.status, 507);
  EXPECT_NE(refused.body.find("uploaded files that no job uses"), std::string::npos)
      << refused.body;
  const auto submitted = controller_.submit(
      {.name = "train",
       .command = {"true"},
       .volumes = {{.kind = job::Volume::Kind::kTree, .source = id, .target = "/workspace"}},
       .folder = "/"},
      "");
  ASSERT_TRUE(submitted) << submitted.error().to_string();
  EXPECT_EQ(ask("PUT", kChunks, body_of({"fourth"})).status, 507);
  clock_.advance(std::chrono::minutes(1));
  EXPECT_EQ(ask("PUT", kChunks, body_of({"fourth"})).status, 204);
  EXPECT_EQ(missing({chunk_id("third"), chunk_id(content)}), std::vector<std::string>{});
}

TEST_F(TreeRoutes, AChunkThatTheStoreCannotWriteIsReportedAsMissing) {
  // A file at the path of the store's folder makes writing fail, even for root.
  ASSERT_TRUE(base::write_file(folder_ / "trees", "x"));

  EXPECT_GE(ask("PUT", kChunks, body_of({"x"})).status, 400);
  EXPECT_NE(ask("POST", kMissing, api::chunk_ids_to_json({chunk_id("x")})).body,
            api::chunk_ids_to_json({}));
}

}  // namespace
}  // namespace muster::server
