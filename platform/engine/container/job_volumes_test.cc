// A removal that a host has refused is tried again, but never of a later thing of the same name.
#include "engine/container/job_volumes.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/test_folder.h"
#include "engine/container/removals.h"
#include "engine/container/scripted_daemon.h"

namespace muster::engine {
namespace {

using base::Result;

constexpr const char* kArtifactVolume = "muster-job1-artifacts";
constexpr const char* kTreeVolume = "muster-job1-tree-1";

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

  Result<void> try_to_ensure(int attempt, std::vector<job::Volume> volumes,
                             const std::shared_ptr<JobVolumes::Made>& made) {
    launch::TaskPlan plan;
    plan.task = "main";
    plan.image = "image";
    plan.volumes = std::move(volumes);
    std::optional<Result<void>> ensured;
    volumes_.ensure({"job1", attempt}, plan, host_, made,
                    [&](Result<void> result) { ensured = std::move(result); });
    if (!run_until(loop_, [&] { return ensured.has_value(); })) {
      return base::Error{.what = "no answer"};
    }
    return *ensured;
  }
  /// Ensures the volume of the job's artifacts.
  void ensure(int attempt) {
    const auto ensured = try_to_ensure(attempt, {kArtifacts}, std::make_shared<JobVolumes::Made>());
    ASSERT_TRUE(ensured) << ensured.error().to_string();
  }

  /// From now on the host has these volumes, of any name.
  void have_volumes(std::set<std::string>& there) {
    daemon_.answer("GET /volumes", [&there](const http::Request&) {
      std::string list;
      for (const std::string& name : there) {
        list += (list.empty() ? "" : ",") + (R"({"Name":")" + name) +
                R"(","Labels":{"org.muster.owner":"me","org.muster.job":"job1"}})";
      }
      http::Response response;
      response.body = R"({"Volumes":[)" + list + "]}";
      return response;
    });
    daemon_.answer("POST /volumes/create", [&there](const http::Request& request) {
      for (const char* name : {kArtifactVolume, kTreeVolume}) {
        if (request.body.find(name) != std::string::npos) there.insert(name);
      }
      return http::Response{.status = 201};
    });
    for (const char* name : {kArtifactVolume, kTreeVolume}) {
      daemon_.answer(std::string("GET /volumes/") + name, [&there, name](const http::Request&) {
        return there.contains(name) ? http::Response() : refusal(404, "no such volume");
      });
      daemon_.answer(std::string("DELETE /volumes/") + name, [&there, name](const http::Request&) {
        there.erase(name);
        return http::Response{.status = 204};
      });
    }
  }

  static inline const job::Volume kArtifacts{
      .kind = job::Volume::Kind::kArtifacts, .source = {}, .target = "/artifacts"};
  static inline const job::Volume kTree{
      .kind = job::Volume::Kind::kTree, .source = {}, .target = "/tree"};

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

  ensure(2);

  // The network's removal is repeated together with all others that are left.
  const int repeats = daemon_.count("DELETE /networks/busy");
  ASSERT_TRUE(
      run_until(loop_, [&] { return daemon_.count("DELETE /networks/busy") >= repeats + 2; }));
  EXPECT_TRUE(is_there_);
}

TEST_F(JobVolumesTest, AVolumeThatWasRemovedFromTheHostIsCreatedAndFilledAgain) {
  ensure(1);
  ensure(2);
  EXPECT_EQ(daemon_.count("POST /volumes/create"), 1);
  is_there_ = false;  // docker volume prune

  ensure(3);

  EXPECT_TRUE(is_there_);
  EXPECT_EQ(daemon_.count("POST /volumes/create"), 2);
  EXPECT_EQ(daemon_.count("PUT /containers/f1/archive /volumes/0"), 2);
}

TEST_F(JobVolumesTest, ARefillThatFailsIsRepeatedAndLeavesTheOtherVolumes) {
  std::set<std::string> there;
  have_volumes(there);
  const auto made = std::make_shared<JobVolumes::Made>();
  ASSERT_TRUE(try_to_ensure(1, {kArtifacts, kTree}, made));
  EXPECT_EQ(made->size(), 2U);
  made->clear();
  there.erase(kTreeVolume);  // docker volume rm
  daemon_.refuse("PUT /containers/f1/archive", 500, "the disk failed");

  EXPECT_FALSE(try_to_ensure(2, {kArtifacts, kTree}, made));
  EXPECT_TRUE(there.contains(kTreeVolume)) << "half filled";
  daemon_.answer("PUT /containers/f1/archive", "");
  const auto refilled = try_to_ensure(3, {kArtifacts, kTree}, made);

  ASSERT_TRUE(refilled) << refilled.error().to_string();
  EXPECT_EQ(daemon_.count(std::string("DELETE /volumes/") + kArtifactVolume), 0);
  EXPECT_EQ(daemon_.count(std::string("DELETE /volumes/") + kTreeVolume), 1);
  EXPECT_EQ(daemon_.count("PUT /containers/f1/archive /volumes/1"), 3);
  EXPECT_TRUE(made->empty()) << "a failed start would remove them";
  EXPECT_TRUE(try_to_ensure(4, {kArtifacts, kTree}, made));
  EXPECT_EQ(daemon_.count("PUT /containers/f1/archive /volumes/1"), 3);
}

TEST_F(JobVolumesTest, TheVolumesOfADeletedJobAreRemovedAlsoAfterARefillThatFailed) {
  std::set<std::string> there;
  have_volumes(there);
  const auto made = std::make_shared<JobVolumes::Made>();
  ASSERT_TRUE(try_to_ensure(1, {kArtifacts, kTree}, made));
  there.erase(kTreeVolume);
  daemon_.refuse("PUT /containers/f1/archive", 500, "the disk failed");
  ASSERT_FALSE(try_to_ensure(2, {kArtifacts, kTree}, made));
  Hosts hosts(loop_, {[](HeldHost&) {}, [](HeldHost&) {}, [](HeldHost&) {}});
  ContainerEngineOptions options;
  options.owner = "me";
  options.hosts = {options_of((folder_ / "a.sock").string())};
  ASSERT_TRUE(hosts.connect(options));

  volumes_.remove("job1", hosts);

  EXPECT_TRUE(run_until(loop_, [&] { return there.empty() && removals_.is_done(); }));
  hosts.close();
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
