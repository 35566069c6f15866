#include "dialects/kubernetes/node.h"

#include <gtest/gtest.h>

#include "dialects/kubernetes/test_files.h"

namespace muster::dialects::kubernetes {
namespace {

TEST(KubernetesKeys, AreFaultsIfUnknownOrGivenTwice) {
  EXPECT_EQ(faults_of(simple_job({"comand: [ls]", "command: [ls]", "image: other"})),
            (Lines{"spec.template.spec.containers[0].comand: is an unknown key; did you mean "
                   "'command'?",
                   "spec.template.spec.containers[0].image: is given twice"}));
}

TEST(KubernetesKeys, AreFaultsIfOfAnotherType) {
  EXPECT_EQ(
      faults_of(simple_job({"command: ls"}, {"hostname: [a]", "subdomain: {a: b}"},
                           {"suspend: maybe", "backoffLimit: -1"})),
      (Lines{"spec.suspend: must be true or false",
             "spec.backoffLimit: must be a whole number from 0 to 2147483647",
             "spec.template.spec.subdomain: must be text, not a map",
             "spec.template.spec.containers[0].command: must be a list, not a single value"}));
}

TEST(KubernetesKeys, MayBeMergedFromAnotherMap) {
  const job::JobSpec spec = spec_of(
      simple_job({"<<: [{command: [ls], args: [a]}, {args: [b], workingDir: /x}]", "args: [c]"}));
  EXPECT_EQ(spec.command, Lines{"ls"});
  EXPECT_EQ(spec.arguments, Lines{"c"});
  EXPECT_EQ(spec.folder, "/x");
}

TEST(KubernetesKeys, CountAsAbsentIfNull) {
  const job::JobSpec spec = spec_of(simple_job({"command: [ls]", "args:", "env:", "resources: ~"}));
  EXPECT_EQ(spec.command, Lines{"ls"});
}

}  // namespace
}  // namespace muster::dialects::kubernetes
