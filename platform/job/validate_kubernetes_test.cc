#include <gtest/gtest.h>

#include "job/checker.h"
#include "job/kubernetes.h"
#include "job/validate.h"

namespace muster::job {

namespace {

std::vector<base::Fault> faults_of_options(const KubernetesSpec& options) {
  Checker check;
  check_kubernetes(options, check);
  return check.take();
}

TEST(KubernetesToleration, IsReadFromItsShortForm) {
  EXPECT_EQ(toleration_of("*"), KubernetesToleration{});
  EXPECT_EQ(toleration_of("gpu"), (KubernetesToleration{.key = "gpu"}));
  EXPECT_EQ(toleration_of("gpu:NoExecute"),
            (KubernetesToleration{.key = "gpu", .value = {}, .effect = "NoExecute"}));
  EXPECT_EQ(
      toleration_of("example.com/for=train:NoSchedule"),
      (KubernetesToleration{.key = "example.com/for", .value = "train", .effect = "NoSchedule"}));
  for (const char* const wrong : {"", "=a", "a:Never", "a b", "a=b c", "a/b/c", "**"}) {
    EXPECT_FALSE(toleration_of(wrong)) << wrong;
  }
}

TEST(KubernetesToleration, CoversTaintsOfItsKeyValueAndEffect) {
  const char* const taint = "for=train:NoSchedule";
  for (const char* const covers : {"*", "for", "for=train", "for:NoSchedule", taint}) {
    EXPECT_TRUE(tolerates(covers, taint)) << covers;
  }
  for (const char* const other :
       {"", "fo", "for=rest", "for:NoExecute", "for=train:NoExecute", "train"}) {
    EXPECT_FALSE(tolerates(other, taint)) << other;
  }
}

TEST(KubernetesClaim, IsReadFromItsShortForm) {
  EXPECT_EQ(claim_of("data:/data"), (KubernetesClaim{.claim = "data", .path = "/data"}));
  EXPECT_EQ(claim_of("data/sets/one:/data/in:ro"),
            (KubernetesClaim{
                .claim = "data", .folder = "sets/one", .path = "/data/in", .read_only = true}));
  for (const char* const wrong : {"", "data", "data:data", "data:/", ":/data", "Data:/data",
                                  "data/../x:/data", "data:/data/../etc"}) {
    EXPECT_FALSE(claim_of(wrong)) << wrong;
  }
}

TEST(KubernetesClaim, MayBeASecretOrAConfigMap) {
  using Kind = KubernetesClaim::Kind;
  EXPECT_EQ(claim_of("secret:hf/token:/etc/hf"), (KubernetesClaim{.kind = Kind::kSecret,
                                                                  .claim = "hf",
                                                                  .folder = "token",
                                                                  .path = "/etc/hf",
                                                                  .read_only = true}));
  EXPECT_EQ(claim_of("configmap:code:/code")->object(), "configmap:code");
  EXPECT_EQ(claim_of("secret:hf:/etc/hf:ro")->object(), "secret:hf");
  // A volume claim of that name.
  EXPECT_EQ(claim_of("secret:/data"), (KubernetesClaim{.claim = "secret", .path = "/data"}));
  EXPECT_EQ(claim_of("secret:/data")->object(), "secret");
  for (const char* const wrong : {"secret:", "secret:hf", "secret:Hf:/x", "configmap:a/../b:/x"}) {
    EXPECT_FALSE(claim_of(wrong)) << wrong;
  }
}

TEST(KubernetesOptions, DoNotNameSecretsOfMuster) {
  const auto faults = faults_of_options({.claims = {"secret:muster-1-j1-1:/x", "muster-x:/y"}});
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].field, "kubernetes.claims[0]");
}

TEST(KubernetesOptions, AreCheckedAllAtOnce) {
  const KubernetesSpec options{.node_selector = {{"a b", "x"}},
                               .tolerations = {"gpu:Sometimes"},
                               .priority_class = "High",
                               .image_pull_secrets = {""},
                               .claims = {"data"},
                               .devices = {{"hca", "1"}, {"rdma/hca", "0"}},
                               .labels = {{"muster.dev/job", "x"}, {"team", "a b"}}};

  std::vector<std::string> fields;
  for (const base::Fault& fault : faults_of_options(options)) fields.push_back(fault.field);

  EXPECT_EQ(fields,
            (std::vector<std::string>{
                "kubernetes.node_selector.a b", "kubernetes.tolerations[0]",
                "kubernetes.priority_class", "kubernetes.image_pull_secrets[0]",
                "kubernetes.devices.hca", "kubernetes.devices.rdma/hca", "kubernetes.claims[0]",
                "kubernetes.labels.muster.dev/job", "kubernetes.labels.team"}));
}

TEST(KubernetesOptions, HaveAtMost64OfEach) {
  KubernetesSpec options;
  for (int i = 0; i < 65; ++i) options.annotations["note" + std::to_string(i)] = "x";
  EXPECT_EQ(faults_of_options(options),
            (std::vector<base::Fault>{{"kubernetes.annotations", "has more than 64 entries"}}));
  options.annotations.erase("note0");
  EXPECT_TRUE(faults_of_options(options).empty());
}

TEST(KubernetesOptions, MayBeEmpty) {
  EXPECT_EQ(faults_of_options({}), std::vector<base::Fault>{});
}

}  // namespace

}  // namespace muster::job
