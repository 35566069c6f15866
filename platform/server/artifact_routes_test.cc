// Requests that name the content of an artifact by its checksum. tests/e2e_artifacts.py has the rest.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/fake_random.h"
#include "base/files.h"
#include "base/test_folder.h"
#include "control/test_logs.h"
#include "server/router.h"
#include "server/routes.h"

namespace muster::server {
namespace {

class ArtifactRoutes : public testing::Test {
 protected:
  ArtifactRoutes() {
    engine_.artifacts = folder_;
    engine_.offered = {{.name = "n1", .task_slots = 100}};
    controller_ = std::make_unique<control::Controller>(
        control::ControllerDependencies{
            .loop = loop_, .store = store_, .engine = engine_, .clock = clock_, .random = random_},
        control::SiteFacts{.user = "root"});
    EXPECT_TRUE(controller_->submit(control::single("job", "default", 0), ""));
    // As of a server that was started just now: no checksum is known.
    add_artifact_routes(router_, loop_, *controller_);
  }

  void write(const std::string& content) {
    EXPECT_TRUE(base::write_file(folder_ / "file", content));
  }

  http::Response get(const http::Headers& headers, std::function<bool()> has_left = nullptr,
                     std::function<bool()> still_valid = nullptr) {
    ApiCall call{.who = access::local_identity("root")};
    call.request.path = "/v1/jobs/job/artifact";
    call.request.query["path"] = "file";
    call.request.headers = headers;
    call.request.peer.has_left = std::move(has_left);
    call.still_valid = std::move(still_valid);
    http::Response answer;
    router_.handle(std::move(call), [&](http::Response response) {
      answer = std::move(response);
      loop_.stop();
    });
    loop_.run();
    return answer;
  }

  const base::TestFolder folder_;
  base::EventLoop loop_;
  control::MortalStore store_;
  control::GrowingLogs engine_{loop_};
  base::FakeClock clock_;
  base::FakeRandom random_;
  std::unique_ptr<control::Controller> controller_;
  Router router_;
};

constexpr const char* kSumOfAbc =
    "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"";

TEST_F(ArtifactRoutes, AChecksumMatchesThatIsNotKnownYet) {
  write("abc");

  const http::Response answer = get({{"if-match", kSumOfAbc}, {"range", "bytes=1-"}});

  EXPECT_EQ(answer.status, 206);
  EXPECT_EQ(answer.headers.at("etag"), kSumOfAbc);
}

TEST_F(ArtifactRoutes, AnotherContentDoesNotMatch) {
  write("abc");
  EXPECT_EQ(get({{"if-match", kSumOfAbc}}).status, 200);
  write("abd");

  EXPECT_EQ(get({{"if-match", kSumOfAbc}}).status, 412);
  EXPECT_EQ(get({{"if-range", kSumOfAbc}, {"range", "bytes=1-"}}).status, 200)
      << "the whole of another file";
}

TEST_F(ArtifactRoutes, AnEtagWithoutAChecksumStaysValidWhenTheChecksumIsKnown) {
  write("abc");
  const std::string etag = get({}).headers.at("etag");
  EXPECT_NE(etag, kSumOfAbc);

  EXPECT_EQ(get({{"if-range", kSumOfAbc}}).headers.at("etag"), kSumOfAbc);

  EXPECT_EQ(get({{"if-match", etag}}).status, 200);
}

TEST_F(ArtifactRoutes, NoChecksumIsComputedForAClientThatHasLeft) {
  write("abc");

  EXPECT_EQ(get({{"if-match", kSumOfAbc}}, [] { return true; }).status, 503);
}

TEST_F(ArtifactRoutes, ACallerWhoMayNoLongerSeeTheJobGetsNoFile) {
  write("abc");

  EXPECT_EQ(get({{"if-match", kSumOfAbc}}, nullptr, [] { return false; }).status, 404);
}

TEST_F(ArtifactRoutes, AFileThatChangesIsNotReadToItsEnd) {
  constexpr uintmax_t kBytes = uintmax_t{160} << 20;  // several steps
  write("");
  std::filesystem::resize_file(folder_ / "file", kBytes);
  int steps = 0;
  const auto write_more = [&] {
    if (++steps == 1) std::filesystem::resize_file(folder_ / "file", kBytes + 1);
    return false;
  };

  EXPECT_EQ(get({{"if-match", kSumOfAbc}}, write_more).status, 412);
  EXPECT_EQ(steps, 1);
}

}  // namespace
}  // namespace muster::server
