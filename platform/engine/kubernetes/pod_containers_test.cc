// Init containers and sidecars that a job brings along: as objects, and as the API server reports them.
#include "engine/kubernetes/pod_containers.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/kubernetes/pod_state.h"
#include "words/sentence.h"

namespace muster::engine::kubernetes {

namespace {

using Json = nlohmann::json;
using Runs = job::PodContainer::Runs;

const job::PodContainer kFetch{.name = "fetch",
                               .image = "curl:8",
                               .command = {"sh", "-c", "echo $(HOME)"},
                               .environment = {{"RATE", "$1"}},
                               .folder = "/in",
                               .user = "0:7",
                               .cpu_milli = 500,
                               .memory_bytes = 64,
                               .mounts = {"/data/raw:/in", "/sets/a", "/dev/shm:/mem:ro"}};
const job::PodContainer kKeep{.name = "keep", .runs = Runs::kBeside, .image = "b:1"};

Json init_containers_of(bool mounts_programs) {
  const PodSite site{.owner = "o", .space = "training", .node_image = "muster-node:1"};
  const PodJob job{
      .gang = {"j7", 2},
      .name = "dist",
      .options = {.claims = {"data/sets:/sets:ro"}},
      .volumes = {{.kind = job::Volume::Kind::kTree, .source = "", .target = "/data"}}};
  const PodTask task{.task = "main",
                     .hostname = "dist-main",
                     .mounts_programs = mounts_programs,
                     .image = "a:1",
                     .containers = {kFetch, kKeep}};
  auto pod = pod_object(job, task, site, "uid-1");
  EXPECT_TRUE(pod) << pod.error().to_string();
  return pod ? pod->at("spec").at("initContainers") : Json();
}

TEST(ContainersBeside, StartInTheirOrderAfterMustersOwn) {
  const auto names_of = [](const Json& containers) {
    std::vector<std::string> names;
    for (const Json& each : containers) names.push_back(each.at("name"));
    return names;
  };
  EXPECT_EQ(names_of(init_containers_of(false)),
            (std::vector<std::string>{"muster", "fetch", "keep"}));
  EXPECT_EQ(names_of(init_containers_of(true)), (std::vector<std::string>{"fetch", "keep"}));
}

TEST(ContainersBeside, HaveTheSettingsOfTheJob) {
  const Json fetch = init_containers_of(true).at(0);
  EXPECT_FALSE(fetch.contains("restartPolicy"));
  EXPECT_EQ(fetch.at("command"), Json({"sh", "-c", "echo $$(HOME)"}))
      << "the kubelet changes no word";
  EXPECT_EQ(fetch.at("env"), Json::array({{{"name", "RATE"}, {"value", "$$1"}}}));
  EXPECT_EQ(fetch.at("workingDir"), "/in");
  EXPECT_EQ(fetch.at("resources").at("requests"), Json({{"cpu", "500m"}, {"memory", "64"}}));
  EXPECT_EQ(fetch.at("resources").at("limits"), fetch.at("resources").at("requests"));
  const Json& security = fetch.at("securityContext");
  EXPECT_EQ(security.at("runAsUser"), 0);
  EXPECT_EQ(security.at("runAsGroup"), 7);
  EXPECT_EQ(security.at("runAsNonRoot"), false);
  EXPECT_EQ(security.at("allowPrivilegeEscalation"), false);

  const Json keep = init_containers_of(true).at(1);
  EXPECT_EQ(keep.at("restartPolicy"), "Always");
  EXPECT_FALSE(keep.at("securityContext").contains("runAsUser")) << "the task's";
  EXPECT_FALSE(keep.contains("volumeMounts"));
}

TEST(ContainersBeside, MountTheVolumesOfTheTask) {
  const Json mounts = init_containers_of(true).at(0).at("volumeMounts");
  EXPECT_EQ(mounts, Json::array({{{"name", "volume-0"}, {"mountPath", "/in"}, {"subPath", "raw"}},
                                 {{"name", "claim-0"},
                                  {"mountPath", "/sets/a"},
                                  {"subPath", "sets/a"},
                                  {"readOnly", true}},
                                 {{"name", "shm"}, {"mountPath", "/mem"}, {"readOnly", true}}}));
}

/// A pod that is at its init container `fetch`, after Muster's, with a sidecar before it.
Json pod_at(const Json& state_of_fetch, const std::string& phase = "Pending") {
  const auto status = [](const char* name, const Json& state) {
    return Json{{"name", name}, {"image", std::string(name) + ":1"}, {"state", state}};
  };
  return {{"metadata", {{"name", "p"}, {"uid", "u"}}},
          {"spec",
           {{"nodeName", "n1"},
            {"initContainers", Json::array({{{"name", "muster"}},
                                            {{"name", "keep"}, {"restartPolicy", "Always"}},
                                            {{"name", "fetch"}, {"image", "fetch:1"}}})}}},
          {"status",
           {{"phase", phase},
            {"initContainerStatuses",
             Json::array({status("muster", {{"terminated", {{"exitCode", 0}}}}),
                          status("keep", {{"running", Json::object()}}),
                          status("fetch", state_of_fetch)})}}}};
}

TEST(ContainersBeside, AreNamedWhileThePodIsAtThem) {
  const auto sentence = [](const Json& pod) {
    return words::sentence(job::Reason(wait_of(read_pod(pod), "main", {})));
  };
  EXPECT_EQ(sentence(pod_at({{"running", Json::object()}})),
            "the pod of main on node n1 runs init container fetch");
  EXPECT_EQ(sentence(pod_at({{"waiting", {{"reason", "ErrImagePull"}, {"message", "no route"}}}})),
            "the pod of main on node n1 waits for image fetch:1: no route (ErrImagePull)");
  EXPECT_EQ(read_pod(pod_at({{"terminated", {{"exitCode", 0}}}})).init_name, "");
}

TEST(ContainersBeside, ThatFailEndTheStart) {
  const Json failed{{"terminated", {{"exitCode", 3}, {"reason", "Error"}, {"message", "no data"}}}};
  const auto fault = hopeless(read_pod(pod_at(failed, "Failed")), "main");
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->what, "init container fetch of main ended with code 3: no data (Error)");
  EXPECT_EQ(fault->code, base::ErrorCode::kUnavailable);
  const Json missing{{"waiting", {{"reason", "ErrImageNeverPull"}, {"message", "not present"}}}};
  const auto image = hopeless(read_pod(pod_at(missing)), "main");
  ASSERT_TRUE(image);
  EXPECT_EQ(image->code, base::ErrorCode::kNotFound);
}

}  // namespace

}  // namespace muster::engine::kubernetes
