// The routes of artifacts, with a real controller, real files and a fake engine.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>

#include "api/file_wire.h"
#include "base/fake_random.h"
#include "base/files.h"
#include "base/test_folder.h"
#include "control/controller.h"
#include "engine/fake_engine.h"
#include "server/routes.h"
#include "store/memory_store.h"
#include "workspace/manifest.h"

namespace muster::server {
namespace {

using Query = std::map<std::string, std::string>;
using Headers = std::map<std::string, std::string>;

class ArtifactRoutes : public testing::Test {
 protected:
  ArtifactRoutes() {
    engine_.artifacts = folder_ / "artifacts";
    std::filesystem::create_directory(folder_ / "artifacts");
    controller_ = std::make_unique<control::Controller>(
        control::ControllerDependencies{
            .loop = loop_, .store = store_, .engine = engine_, .clock = clock_, .random = random_},
        control::SiteFacts{.user = "ada"});
    EXPECT_TRUE(controller_->recover());
    add_artifact_routes(router_, loop_, *controller_);
    EXPECT_TRUE(controller_->submit({.name = "dist", .command = {"train"}, .folder = "/"}, ""));
  }

  void write(const std::string& path, const std::string& content) {
    const std::filesystem::path file = folder_ / "artifacts" / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
  }

  void turn() {
    loop_.post([this] { loop_.stop(); });
    loop_.run();
  }

  http::Response ask(const std::string& action, const Query& query = {},
                     const Headers& headers = {}) {
    http::Response answer{.status = 0};
    router_.handle(
        {.request = {.path = "/v1/jobs/dist/" + action, .query = query, .headers = headers},
         .who = access::local_identity("ada"),
         .id = "r1",
         .still_valid = [this] { return still_valid_; }},
        [&](http::Response response) { answer = std::move(response); });
    while (answer.status == 0) turn();
    return answer;
  }

  /// The next piece of the body, or nullopt at its end.
  std::optional<std::string> pull(const http::Response& answer) {
    std::optional<http::BodyPiece> piece;
    answer.stream->pull([&](http::BodyPiece bytes) { piece = std::move(bytes); });
    while (!piece) turn();
    return *piece;
  }

  std::string whole(const http::Response& answer) {
    if (answer.stream == nullptr) return answer.body;
    std::string text;
    while (const auto piece = pull(answer)) text += *piece;
    return text;
  }

  api::ArtifactPage list(const Query& query = {}) {
    const http::Response answer = ask("artifacts", query);
    EXPECT_EQ(answer.status, 200);
    const auto page = api::artifacts_from_json(whole(answer));
    EXPECT_TRUE(page) << page.error().to_string();
    return page ? *page : api::ArtifactPage{};
  }

  base::TestFolder folder_;
  base::EventLoop loop_;
  store::MemoryStore store_;
  engine::FakeEngine engine_{loop_};
  base::FakeClock clock_;
  base::FakeRandom random_;
  std::unique_ptr<control::Controller> controller_;
  Router router_;
  bool still_valid_ = true;
};

TEST_F(ArtifactRoutes, FilesOfAJobAreListedAndFetched) {
  write("model.pt", "weights");
  write("logs/a\nb", "");
  std::filesystem::create_symlink("/etc/passwd", folder_ / "artifacts/link");

  const api::ArtifactPage page = list();

  ASSERT_EQ(page.artifacts.size(), 3U);
  EXPECT_EQ(page.artifacts[0].kind, api::Artifact::Kind::kLink);
  EXPECT_EQ(page.artifacts[1].path, "logs/a\nb");
  EXPECT_EQ(page.artifacts[2].bytes, 7);
  EXPECT_EQ(page.artifacts[2].sha256, "");
  const http::Response file = ask("artifact", {{"path", "model.pt"}});
  EXPECT_EQ(file.status, 200);
  EXPECT_EQ(file.headers.at("content-length"), "7");
  EXPECT_EQ(file.headers.at("content-disposition"), "attachment");
  EXPECT_EQ(whole(file), "weights");
}

TEST_F(ArtifactRoutes, AJobWithoutAFolderHasNoArtifacts) {
  engine_.artifacts.reset();

  EXPECT_TRUE(list().artifacts.empty());
  EXPECT_EQ(ask("artifact", {{"path", "x"}}).status, 404);
}

TEST_F(ArtifactRoutes, ChecksumsAreListedOnRequestAndBecomeEtags) {
  write("a", "one");
  write("b", std::string(3 << 20, 'x'));
  std::filesystem::create_symlink("a", folder_ / "artifacts/c");

  const api::ArtifactPage page = list({{"checksums", "true"}});

  ASSERT_EQ(page.artifacts.size(), 3U);
  EXPECT_EQ(page.artifacts[0].sha256, workspace::chunk_id("one"));
  EXPECT_EQ(page.artifacts[1].sha256, workspace::chunk_id(std::string(3 << 20, 'x')));
  EXPECT_EQ(page.artifacts[2].sha256, "");
  EXPECT_EQ(ask("artifact", {{"path", "a"}}).headers.at("etag"),
            api::etag_of(workspace::chunk_id("one")));
}

TEST_F(ArtifactRoutes, AnEtagChangesWithTheFile) {
  write("a", "one");
  const std::string before = ask("artifact", {{"path", "a"}}).headers.at("etag");
  write("a", "another");

  EXPECT_NE(ask("artifact", {{"path", "a"}}).headers.at("etag"), before);
  EXPECT_EQ(ask("artifact", {{"path", "a"}}, {{"if-match", before}}).status, 412);
  const http::Response whole_again =
      ask("artifact", {{"path", "a"}}, {{"range", "bytes=1-"}, {"if-range", before}});
  EXPECT_EQ(whole_again.status, 200);
  EXPECT_EQ(whole(whole_again), "another");
}

TEST_F(ArtifactRoutes, OneValidRangeIsSentAndAnInvalidOneIsIgnored) {
  write("ten", "0123456789");
  struct Case {
    std::string range;
    int status;
    std::string bytes;
    std::string content_range;
  };
  const std::vector<Case> cases{{"bytes=4-", 206, "456789", "bytes 4-9/10"},
                                {"bytes=4-6", 206, "456", "bytes 4-6/10"},
                                {"bytes=8-100", 206, "89", "bytes 8-9/10"},
                                {"bytes=-3", 206, "789", "bytes 7-9/10"},
                                {"bytes=-100", 206, "0123456789", "bytes 0-9/10"},
                                {"bytes=0-0", 206, "0", "bytes 0-0/10"},
                                {"bytes=5-4", 200, "0123456789", ""},
                                {"bytes=1-2,4-5", 200, "0123456789", ""},
                                {"lines=1-", 200, "0123456789", ""},
                                {"bytes=x-", 200, "0123456789", ""}};
  for (const Case& each : cases) {
    const http::Response answer = ask("artifact", {{"path", "ten"}}, {{"range", each.range}});
    EXPECT_EQ(answer.status, each.status) << each.range;
    EXPECT_EQ(whole(answer), each.bytes) << each.range;
    const auto said = answer.headers.find("content-range");
    EXPECT_EQ(said == answer.headers.end() ? "" : said->second, each.content_range) << each.range;
  }
  const http::Response beyond = ask("artifact", {{"path", "ten"}}, {{"range", "bytes=10-"}});
  EXPECT_EQ(beyond.status, 416);
  EXPECT_EQ(beyond.headers.at("content-range"), "bytes */10");
}

TEST_F(ArtifactRoutes, AFileThatGrowsIsSentWithItsLengthAtTheRequest) {
  write("log", "first");
  const http::Response answer = ask("artifact", {{"path", "log"}});
  std::ofstream(folder_ / "artifacts/log", std::ios::app) << " and more";

  EXPECT_EQ(answer.headers.at("content-length"), "5");
  EXPECT_EQ(whole(answer), "first");
}

TEST_F(ArtifactRoutes, TheStreamOfATruncatedFileEndsEarly) {
  write("log", std::string(1 << 20, 'x'));
  const http::Response answer = ask("artifact", {{"path", "log"}});
  std::filesystem::resize_file(folder_ / "artifacts/log", 10);

  EXPECT_EQ(answer.headers.at("content-length"), std::to_string(1 << 20));
  EXPECT_EQ(whole(answer).size(), 10U);
}

TEST_F(ArtifactRoutes, ALargeFileComesInPieces) {
  write("large", std::string(8 << 20, 'x'));
  const http::Response answer = ask("artifact", {{"path", "large"}});

  const auto first = pull(answer);

  ASSERT_TRUE(first);
  EXPECT_LE(first->size(), size_t{1} << 20);
  EXPECT_EQ(first->size() + whole(answer).size(), size_t{8} << 20);
}

TEST_F(ArtifactRoutes, PathsOutsideOfTheFolderAndSpecialFilesAreRefused) {
  std::filesystem::create_symlink("/etc", folder_ / "artifacts/out");
  std::filesystem::create_symlink("/etc/passwd", folder_ / "artifacts/link");
  ASSERT_EQ(::mkfifo((folder_ / "artifacts/pipe").c_str(), 0600), 0);
  const std::vector<std::pair<std::string, int>> table{
      {"", 400},        {"../x", 400}, {"/etc/passwd", 400}, {"out/passwd", 404},
      {"missing", 404}, {"link", 409}, {"pipe", 409},        {"out/../link", 400}};
  for (const auto& [path, status] : table) {
    EXPECT_EQ(ask("artifact", {{"path", path}}).status, status) << path;
  }
  EXPECT_EQ(ask("artifacts", {{"checksums", "maybe"}}).status, 400);
  EXPECT_EQ(ask("artifacts", {{"perfix", "a"}}).status, 400);
}

TEST_F(ArtifactRoutes, LongListsComeInPages) {
  for (int i = 0; i < 5'003; ++i) write("f/" + std::to_string(i), "");

  const api::ArtifactPage first = list();
  const api::ArtifactPage second = list({{"after", first.artifacts.back().path}});

  EXPECT_TRUE(first.truncated);
  EXPECT_FALSE(second.truncated);
  EXPECT_EQ(first.artifacts.size() + second.artifacts.size(), 5'003U);
  EXPECT_EQ(list({{"prefix", "f/4999"}}).artifacts.size(), 1U);
}

TEST_F(ArtifactRoutes, AStreamEndsWhenItsReaderLosesTheRightToRead) {
  write("large", std::string(8 << 20, 'x'));
  const http::Response answer = ask("artifact", {{"path", "large"}});
  EXPECT_TRUE(pull(answer));

  still_valid_ = false;

  EXPECT_EQ(pull(answer), std::nullopt);
}

TEST_F(ArtifactRoutes, ADroppedStreamDoesNotCallItsReader) {
  write("large", std::string(64 << 20, 'x'));
  for (const char* action : {"artifact", "artifacts"}) {
    http::Response answer =
        ask(action, action == std::string("artifact") ? Query{{"path", "large"}}
                                                      : Query{{"checksums", "true"}});
    bool delivered = false;
    answer.stream->pull([&](const http::BodyPiece&) { delivered = true; });
    answer.stream.reset();
    // The work of this request is queued on the same thread, after that of the dropped stream.
    EXPECT_EQ(ask("artifact", {{"path", "large"}}).status, 200);
    EXPECT_FALSE(delivered);
  }
}

}  // namespace
}  // namespace muster::server
