#include "engine/kubernetes/pod_state.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/kubernetes/api_client.h"
#include "engine/kubernetes/pod.h"
#include "words/sentence.h"

namespace muster::engine::kubernetes {

namespace {

Json pod_on(const std::string& node, const std::string& phase) {
  Json pod{{"metadata", {{"name", "muster-x-w0"}, {"uid", "u"}}},
           {"spec", {{"initContainers", Json::array({{{"name", "muster"}}})}}},
           {"status", {{"phase", phase}, {"podIP", "10.1.0.3"}}}};
  if (!node.empty()) pod["spec"]["nodeName"] = node;
  return pod;
}

Json container_in(const std::string& name, const Json& state) {
  return {{"name", name}, {"image", "img:1"}, {"state", state}};
}

Json installed() {
  return Json::array({container_in("muster", {{"terminated", {{"exitCode", 0}}}})});
}

Json with_task(Json pod, const Json& state) {
  pod["status"]["initContainerStatuses"] = installed();
  pod["status"]["containerStatuses"] = Json::array({container_in("task", state)});
  return pod;
}

Json disrupted(const char* reason, const char* message) {
  Json pod = with_task(pod_on("n1", "Running"), {{"running", Json::object()}});
  pod["status"]["conditions"] = Json::array({{{"type", "DisruptionTarget"},
                                              {"status", "True"},
                                              {"reason", reason},
                                              {"message", message}}});
  return pod;
}

Json failed_pod(const char* reason, const char* message) {
  Json pod = pod_on("n1", "Failed");
  pod["status"]["reason"] = reason;
  pod["status"]["message"] = message;
  return pod;
}

std::string wait_sentence(const Json& pod, const std::optional<PodEvent>& event = {}) {
  return words::sentence(job::Reason(wait_of(read_pod(pod), "worker-0", event)));
}

std::string end_sentence(const Json& pod, bool is_gone = false) {
  return job::explain(end_of_pod(read_pod(pod), is_gone));
}

TEST(PodWaits, ReportsTheMessageOfTheClustersScheduler) {
  Json pod = pod_on("", "Pending");
  pod["status"]["conditions"] =
      Json::array({{{"type", "PodScheduled"},
                    {"status", "False"},
                    {"reason", "Unschedulable"},
                    {"message", "0/2 nodes are available: 2 Insufficient cpu."}}});
  EXPECT_EQ(wait_sentence(pod),
            "the pod of worker-0 waits for a node: 0/2 nodes are available: 2 Insufficient cpu. "
            "(Unschedulable)");
}

TEST(PodWaits, FollowsThePodFromItsNodeToItsMusterNode) {
  Json pod = pod_on("n1", "Pending");
  EXPECT_EQ(wait_sentence(pod), "the pod of worker-0 on node n1 is being prepared");
  EXPECT_EQ(wait_sentence(pod, PodEvent{.pod = "muster-x-w0",
                                        .word = "FailedMount",
                                        .text = "secret \"x\" not found",
                                        .is_warning = true}),
            "the pod of worker-0 on node n1 is being prepared: secret \"x\" not found "
            "(FailedMount)");
  pod["status"]["initContainerStatuses"] = Json::array({container_in(
      "muster",
      {{"waiting", {{"reason", "ErrImagePull"}, {"message", "dial tcp: i/o timeout"}}}})});
  EXPECT_EQ(wait_sentence(pod),
            "the pod of worker-0 on node n1 waits for image img:1: dial tcp: i/o timeout "
            "(ErrImagePull)");
  EXPECT_EQ(wait_sentence(with_task(pod_on("n1", "Running"), {{"running", Json::object()}})),
            "the pod of worker-0 on node n1 runs, and its muster-node does not answer yet");
}

TEST(PodWaits, NamesTheImageOfTheVolumeWithThePrograms) {
  Json pod = pod_on("n1", "Pending");
  pod["spec"] = {
      {"nodeName", "n1"},
      {"volumes",
       Json::array({{{"name", kProgramsVolume}, {"image", {{"reference", "muster-node:7"}}}}})}};
  pod["status"]["containerStatuses"] = Json::array({container_in(
      "task", {{"waiting",
                {{"reason", "ErrImageNeverPull"},
                 {"message", "Container image \"muster-node:7\" is not present"}}}})});
  EXPECT_EQ(wait_sentence(pod),
            "the pod of worker-0 on node n1 waits for image muster-node:7: Container image "
            "\"muster-node:7\" is not present (ErrImageNeverPull)");
  EXPECT_EQ(hopeless(read_pod(pod), "worker-0")->what,
            "node n1 cannot get image muster-node:7 of worker-0: Container image "
            "\"muster-node:7\" is not present (ErrImageNeverPull)");
}

TEST(HopelessPod, IsDistinguishedFromAPodThatMayStillRun) {
  const auto waiting = [](const char* reason, const char* message) {
    return read_pod(with_task(pod_on("n1", "Pending"),
                              {{"waiting", {{"reason", reason}, {"message", message}}}}));
  };
  struct Case {
    PodFacts pod;
    std::optional<base::ErrorCode> code;
  };
  const std::vector<Case> cases{
      {waiting("ContainerCreating", ""), std::nullopt},
      {waiting("ErrImagePull", "dial tcp: i/o timeout"), std::nullopt},
      {waiting("ErrImagePull", "docker.io/x:1: not found"), base::ErrorCode::kNotFound},
      {waiting("ErrImagePull", "ghcr.io/x/app:release-1: not found"), base::ErrorCode::kNotFound},
      {waiting(
           "ErrImagePull",
           "failed to pull and unpack image \"docker.io/x:1\": failed to prepare extraction "
           "snapshot \"extract-1 sha256:0\": parent snapshot sha256:1 does not exist: not found"),
       std::nullopt},
      {waiting(
           "ImagePullBackOff",
           "failed to unpack image on snapshotter overlayfs: content digest sha256:1: not found"),
       std::nullopt},
      {waiting("ErrImagePull", "failed to extract layer sha256:1: blob not found"), std::nullopt},
      {waiting("ErrImagePull", "failed to pull: lease \"x\": not found"), std::nullopt},
      {waiting("ErrImageNeverPull", "not present"), base::ErrorCode::kNotFound},
      {waiting("InvalidImageName", "bad"), base::ErrorCode::kNotFound},
      {waiting("ImagePullBackOff", "failed: unauthorized"), base::ErrorCode::kRefused},
      {waiting("CreateContainerError", "bad mount"), base::ErrorCode::kInvalid},
      {waiting("CreateContainerConfigError", "secret \"a\" not found"), std::nullopt},
      {waiting("CreateContainerConfigError",
               "failed to sync secret cache: timed out waiting for the condition"),
       std::nullopt},
      {waiting("CreateContainerError", "context deadline exceeded"), std::nullopt},
      {waiting(
           "CreateContainerError",
           "failed to reserve container name \"task_muster-x-w0_0\": name \"task_muster-x-w0_0\" "
           "is reserved for \"5f0c\""),
       std::nullopt},
      {waiting("RunContainerError", "exec: \"train\": executable file not found in $PATH"),
       base::ErrorCode::kInvalid},
      {read_pod(failed_pod("OutOfcpu", "Node didn't have enough resource: cpu")),
       base::ErrorCode::kUnavailable},
      {read_pod(disrupted("PreemptionByScheduler", "")), base::ErrorCode::kUnavailable},
      {read_pod(with_task(pod_on("n1", "Running"), {{"running", Json::object()}})), std::nullopt},
  };
  for (const Case& each : cases) {
    const auto error = hopeless(each.pod, "worker-0");
    ASSERT_EQ(error.has_value(), each.code.has_value()) << each.pod.task.waiting;
    EXPECT_TRUE(!error || error->code == *each.code) << error->to_string();
  }
}

TEST(PodEnds, NameTheirCauseInKubernetesWords) {
  EXPECT_EQ(end_sentence(failed_pod("Evicted", "The node was low on resource: memory.")),
            "was lost: Kubernetes evicted its pod on node n1: The node was low on resource: "
            "memory. (Evicted)");
  EXPECT_EQ(end_sentence(disrupted("PreemptionByScheduler", "preempting to accommodate p")),
            "was lost: Kubernetes preempted its pod on node n1 for a pod of higher priority: "
            "preempting to accommodate p (PreemptionByScheduler)");
  EXPECT_EQ(end_sentence(disrupted("EvictionByEvictionAPI", "Eviction API: evicting")),
            "was lost: its pod on node n1 was evicted by request: the node is being drained: "
            "Eviction API: evicting (EvictionByEvictionAPI)");
  EXPECT_EQ(end_sentence(pod_on("n1", "Running"), true),
            "was lost: its pod muster-x-w0 was deleted");
  EXPECT_EQ(end_sentence(failed_pod("DeadlineExceeded", "Pod was active too long")),
            "was lost: its pod on node n1 exceeded its deadline: Pod was active too long "
            "(DeadlineExceeded)");
}

TEST(PodEnds, DistinguishAnOutOfMemoryKillFromALoss) {
  const Json pod = with_task(pod_on("n1", "Failed"),
                             {{"terminated", {{"reason", "OOMKilled"}, {"exitCode", 137}}}});
  const job::ExitStatus status = end_of_pod(read_pod(pod), false);
  EXPECT_FALSE(status.lost);
  EXPECT_TRUE(status.out_of_memory);
  EXPECT_EQ(status.shell_code(), 137);
}

TEST(PodFacts, SurviveObjectsOfAnotherForm) {
  for (const Json& odd :
       {Json(), Json(1), Json{{"status", {{"conditions", 1}, {"containerStatuses", {1}}}}}}) {
    EXPECT_EQ(read_pod(odd), PodFacts{});
    EXPECT_FALSE(read_event(odd));
  }
}

TEST(PodEnds, AWorkloadThatKueueEvictsIsEvictedByTheQueue) {
  Json pod = disrupted("WorkloadEvictedDueToPreempted", "Preempted to accommodate a workload");
  pod["status"]["conditions"][0]["type"] = "TerminationTarget";

  const job::ExitStatus end = end_of_pod(read_pod(pod), false);

  EXPECT_TRUE(end.lost);
  ASSERT_TRUE(end.pod);
  EXPECT_EQ(end.pod->cause, job::PodEnd::Cause::kQueueEvicted);
}

}  // namespace

}  // namespace muster::engine::kubernetes
