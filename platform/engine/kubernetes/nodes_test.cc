#include "engine/kubernetes/nodes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/kubernetes/api_client.h"
#include "engine/kubernetes/pod.h"

namespace muster::engine::kubernetes {

namespace {

Json node_in_cluster(const std::string& name) {
  return {{"metadata", {{"name", name}, {"labels", {{"kubernetes.io/hostname", name}}}}},
          {"status",
           {{"allocatable", {{"cpu", "8"}, {"memory", "16Gi"}, {"pods", "110"}}},
            {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})},
            {"addresses", Json::array({{{"type", "Hostname"}, {"address", name}},
                                       {{"type", "InternalIP"}, {"address", "10.0.0.1"}}})}}}};
}

Json pod_in_cluster(const std::string& uid, const std::string& node, const std::string& cpu) {
  const Json container{{"name", "c"}, {"resources", {{"requests", {{"cpu", cpu}}}}}};
  return {{"metadata", {{"uid", uid}, {"namespace", "default"}}},
          {"spec", {{"nodeName", node}, {"containers", Json::array({container})}}},
          {"status", {{"phase", "Running"}}}};
}

NodeBook book_for_tests() {
  return NodeBook({.owner = "me", .space = "training", .tolerations = {"gpu"}});
}

TEST(NodeBook, MountsImagesWhereKubeletAndRuntimeSupportIt) {
  struct Case {
    const char* kubelet;
    const char* runtime;
    bool mounts;
  };
  const std::vector<Case> cases{{"v1.35.0", "containerd://2.1.0", true},
                                {"v1.37.2-gke.100", "containerd://2.2.1-k3s1", true},
                                {"v1.34.9", "containerd://2.2.1", false},
                                {"v1.37.2", "containerd://1.7.30", false},
                                {"v1.37.2", "containerd://2.0.5", false},
                                {"v1.37.2", "cri-o://1.37.0", false},
                                {"v2.0.0", "containerd://3.0.0", true},
                                {"kwok-v0.8.0", "kwok", false},
                                {"", "", false},
                                {"v1", "containerd://2", false}};
  for (const Case& one : cases) {
    NodeBook book = book_for_tests();
    Json node = node_in_cluster("n1");
    node["status"]["nodeInfo"] = {{"kubeletVersion", one.kubelet},
                                  {"containerRuntimeVersion", one.runtime}};
    book.set_node(node);
    EXPECT_EQ(book.mounts_images("n1"), one.mounts) << one.kubelet << " " << one.runtime;
    EXPECT_EQ(book.mounts_images(""), one.mounts);
    book.set_node(node_in_cluster("n2"));
    EXPECT_FALSE(book.mounts_images(""));
  }
  EXPECT_FALSE(book_for_tests().mounts_images(""));
  EXPECT_FALSE(book_for_tests().mounts_images("n1"));
}

TEST(NodeBook, OffersTheResourcesOfANode) {
  NodeBook book = book_for_tests();
  Json node = node_in_cluster("n1");
  node["metadata"]["labels"]["topology.kubernetes.io/zone"] = "a";
  node["metadata"]["labels"]["muster.dev/pool"] = "big";
  node["metadata"]["labels"]["nvidia.com/gpu.product"] = "NVIDIA-A100";
  node["metadata"]["labels"]["nvidia.com/gpu.memory"] = "81920";
  node["status"]["allocatable"]["nvidia.com/gpu"] = "4";

  EXPECT_TRUE(book.set_node(node));
  EXPECT_FALSE(book.set_node(node));

  const Node found = book.nodes().at(0);
  EXPECT_EQ(found.name, "n1");
  EXPECT_EQ(found.pool, "big");
  EXPECT_EQ(found.cpu_milli, 8000);
  EXPECT_EQ(found.memory_bytes, int64_t{16} << 30);
  EXPECT_EQ(found.task_slots, 110);
  EXPECT_EQ(found.gpus, 4);
  EXPECT_TRUE(found.anonymous_gpus) << "the device plug-in chooses them";
  EXPECT_EQ(found.gpu_model, "NVIDIA-A100");
  EXPECT_EQ(found.gpu_memory_bytes, int64_t{80} << 30);
  EXPECT_EQ(found.address, "10.0.0.1");
  EXPECT_EQ(found.topology, (std::map<std::string, std::string>{{"host", "n1"}, {"zone", "a"}}));
  EXPECT_FALSE(is_silent(found));
  EXPECT_FALSE(is_closed(found));
}

TEST(NodeBook, SubtractsTheRequestsOfOtherPods) {
  NodeBook book = book_for_tests();
  EXPECT_TRUE(book.set_pod(pod_in_cluster("p1", "n1", "500m")));  // before its node is known
  book.set_node(node_in_cluster("n1"));
  EXPECT_TRUE(book.set_pod(pod_in_cluster("p2", "n1", "1")));
  EXPECT_FALSE(book.set_pod(pod_in_cluster("p2", "n1", "1")));
  EXPECT_FALSE(book.set_pod(pod_in_cluster("p3", "", "1"))) << "it has no node yet";
  Json ours = pod_in_cluster("p4", "n1", "2");
  ours["metadata"]["namespace"] = "training";
  ours["metadata"]["labels"][kOwnerKey] = "me";
  EXPECT_FALSE(book.set_pod(ours));
  EXPECT_EQ(book.nodes().at(0).cpu_milli, 6500);
  EXPECT_EQ(book.nodes().at(0).task_slots, 108);

  Json over = pod_in_cluster("p2", "n1", "1");
  over["status"]["phase"] = "Succeeded";
  EXPECT_TRUE(book.set_pod(over));
  EXPECT_EQ(book.nodes().at(0).cpu_milli, 7500);
  EXPECT_TRUE(book.remove_pod("p1"));
  EXPECT_FALSE(book.remove_pod("p1"));
  EXPECT_EQ(book.nodes().at(0).cpu_milli, 8000);
}

TEST(NodeBook, CountsThePodsRequestsAsTheSchedulerDoes) {
  Json pod = pod_in_cluster("p", "n1", "1");
  pod["spec"]["initContainers"] =
      Json::array({{{"name", "a"}, {"resources", {{"requests", {{"cpu", "3"}}}}}},
                   {{"name", "b"},
                    {"restartPolicy", "Always"},
                    {"resources", {{"requests", {{"cpu", "1"}}}}}}});
  pod["spec"]["overhead"] = {{"cpu", "100m"}};
  EXPECT_EQ(requests_of_pod(pod).cpu_milli, 3100);
  std::swap(pod["spec"]["initContainers"][0], pod["spec"]["initContainers"][1]);
  EXPECT_EQ(requests_of_pod(pod).cpu_milli, 4100) << "the sidecar runs beside the init container";
  pod["spec"]["resources"]["requests"]["cpu"] = "7";
  EXPECT_EQ(requests_of_pod(pod).cpu_milli, 7100) << "of the pod as a whole";
  EXPECT_EQ(requests_of_pod(Json()), (ClusterAmounts{.pods = 1}));
}

TEST(NodeBook, MarksNodesThatAreCordonedSilentTaintedOrFull) {
  NodeBook book = book_for_tests();
  Json cordoned = node_in_cluster("cordoned");
  cordoned["spec"]["unschedulable"] = true;
  cordoned["spec"]["taints"] =
      Json::array({{{"key", "node.kubernetes.io/unschedulable"}, {"effect", "NoSchedule"}}});
  Json silent = node_in_cluster("silent");
  silent["status"]["conditions"] = Json::array(
      {{{"type", "Ready"}, {"status", "Unknown"}, {"lastTransitionTime", "2026-11-28T10:00:00Z"}}});
  Json tainted = node_in_cluster("tainted");
  tainted["spec"]["taints"] =
      Json::array({{{"key", "gpu"}, {"effect", "NoSchedule"}},
                   {{"key", "soft"}, {"effect", "PreferNoSchedule"}},
                   {{"key", "for"}, {"value", "train"}, {"effect", "NoExecute"}}});
  Json full = node_in_cluster("full");
  full["status"]["allocatable"]["pods"] = "1";
  for (const Json& node : {cordoned, silent, tainted, full}) book.set_node(node);
  book.set_pod(pod_in_cluster("p", "full", "1"));

  const std::vector<Node> nodes = book.nodes();
  ASSERT_EQ(nodes.size(), 4U);
  EXPECT_TRUE(is_closed(nodes[0])) << nodes[0].name;
  EXPECT_TRUE(nodes[0].taints.empty());
  EXPECT_TRUE(is_closed(nodes[1])) << nodes[1].name;
  EXPECT_EQ(nodes[2].labels.at(kSilentSince), "2026-11-28T10:00:00Z");
  EXPECT_EQ(nodes[3].taints, (std::vector<std::string>{"for=train:NoExecute"}));
}

TEST(NodeBook, SurvivesObjectsOfAnotherForm) {
  NodeBook book = book_for_tests();
  for (const Json& odd : {Json(), Json(3), Json{{"metadata", 1}}, Json{{"spec", {{"taints", 1}}}},
                          Json{{"metadata", {{"uid", "x"}}}, {"spec", {{"nodeName", 1}}}}}) {
    book.set_node(odd);
    book.set_pod(odd);
  }
  EXPECT_EQ(book.nodes().size(), 1U);  // the node without a name
}

}  // namespace

}  // namespace muster::engine::kubernetes
