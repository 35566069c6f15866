// A removal that a host has refused is tried again, but never of a later thing of the same name.
#include "engine/container/job_volumes.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/test_folder.h"
#include "engine/container/removals.h"
#include "engine/container/scripted_daemon.h"

namespace muster::engine {
namespace {

using base::Result;

constexpr const char* kArtifactVolume = "muster-job1-artifacts";

class JobVolumesTest : public testing::Test {
 protected:
  JobVolumesTest() {
    daemon_.answer("GET /volumes", [this](const http::Request&) {
      http::Response response;
      response.body = std::string(R"({"Volumes":[)") +
                      (is_there_ ? std::string(R"({"Name":")") + kArtifactVolume +
                                       R"(","Labels":{"org.muster.owner":"me",)" +
                                       R"("org.muster.job":"job1"}})"
                                 : "") +
                      "]}";
      return response;
    });
    daemon_.answer(std::string("GET /volumes/") + kArtifactVolume, [this](const http::Request&) {
      return is_there_ ? http::Response() : refusal(404, "no such volume");
    });
    daemon_.answer(std::string("DELETE /volumes/") + kArtifactVolume, [this](const http::Request&) {
      if (std::exchange(is_busy_, false)) return refusal(409, "volume is being used");
      is_there_ = false;
      return http::Response{.status = 204};
    });
    daemon_.answer("POST /volumes/create", [this](const http::Request&) {
      is_there_ = true;
      return http::Response{.status = 201};
    });
    daemon_.answer("POST /containers/create", R"({"Id":"f1"})", 201);
    daemon_.answer("PUT /containers/f1/archive", "");
    daemon_.answer("DELETE /containers/f1", "", 204);
    daemon_.refuse("DELETE /networks/busy", 409, "network is being used");
  }

  static http::Response refusal(int status, const std::string& message) {
    http::Response response{.status = status};
    response.body = R"({"message":")" + message + "\"}";
    return response;
  }

  static ContainerHostOptions options_of(const std::string& socket) {
    return {.name = "a", .endpoint = UnixEndpoint{socket}, .address = {}};
  }

  base::TestFolder folder_;
  base::EventLoop loop_;
  bool is_there_ = false;
  bool is_busy_ = false;
  ScriptedDaemon daemon_{loop_, folder_ / "a.sock"};
  ContainerHost connection_{loop_, options_of((folder_ / "a.sock").string()), {}, [] {}};
  HeldHost host_{loop_, connection_, options_of((folder_ / "a.sock").string()), "me"};
  Removals removals_{loop_};
  JobVolumes volumes_{loop_, "me", folder_ / "jobs", removals_};
};

TEST_F(JobVolumesTest, AVolumeIsNotRemovedByARemovalOfTheAttemptBefore) {
  is_there_ = is_busy_ = true;
  int tried = 0;
  removals_.add(host_, Removals::Kind::kVolume, kArtifactVolume, [&] { ++tried; });
  removals_.add(host_, Removals::Kind::kNetwork, "busy", [&] { ++tried; });
  ASSERT_TRUE(run_until(loop_, [&] { return tried == 2; }));

  launch::TaskPlan plan;
  plan.task = "main";
  plan.image = "image";
  plan.volumes = {{.kind = job::Volume::Kind::kArtifacts, .source = {}, .target = "/artifacts"}};
  std::optional<Result<void>> made;
  volumes_.ensure({"job1", 2}, plan, host_, std::make_shared<JobVolumes::Made>(),
                  [&](Result<void> result) { made = std::move(result); });
  ASSERT_TRUE(run_until(loop_, [&] { return made.has_value(); }));
  ASSERT_TRUE(*made) << made->error().to_string();

  // The network's removal is repeated together with all others that are left.
  const int repeats = daemon_.count("DELETE /networks/busy");
  ASSERT_TRUE(
      run_until(loop_, [&] { return daemon_.count("DELETE /networks/busy") >= repeats + 2; }));
  EXPECT_TRUE(is_there_);
}

TEST_F(JobVolumesTest, ACancelledRemovalEndsWithItsCurrentAttempt) {
  is_there_ = is_busy_ = true;
  daemon_.on_asked = [&](const std::string& what) {
    if (what == std::string("DELETE /volumes/") + kArtifactVolume) daemon_.hang();
  };
  removals_.add(host_, Removals::Kind::kVolume, kArtifactVolume);
  ASSERT_TRUE(run_until(loop_, [&] {
    return daemon_.count(std::string("DELETE /volumes/") + kArtifactVolume) == 1;
  }));
  bool has_ended = false;

  removals_.cancel(host_, Removals::Kind::kVolume, kArtifactVolume, [&] { has_ended = true; });

  EXPECT_FALSE(has_ended);
  daemon_.on_asked = nullptr;
  daemon_.go_on();
  ASSERT_TRUE(run_until(loop_, [&] { return has_ended; }));
  EXPECT_TRUE(removals_.is_done());
  EXPECT_TRUE(is_there_);
}

}  // namespace
}  // namespace muster::engine
