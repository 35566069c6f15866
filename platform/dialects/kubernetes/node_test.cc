#include "dialects/kubernetes/node.h"

#include <gtest/gtest.h>

#include "dialects/kubernetes/test_files.h"

namespace muster::dialects::kubernetes {
namespace {

TEST(KubernetesQuantity, IsReadInThousandthsAndRoundedUp) {
  struct Case {
    const char* text;
    int64_t milli;
  };
  for (const Case& one : std::vector<Case>{{"2", 2000},
                                           {"0.5", 500},
                                           {"0.1", 100},
                                           {"100m", 100},
                                           {".5", 500},
                                           {"5.", 5000},
                                           {"+1", 1000},
                                           {"1e3", 1'000'000},
                                           {"1E-2", 10},
                                           {"1500u", 2},
                                           {"1n", 1},
                                           {"2k", 2'000'000},
                                           {"1Ki", 1'024'000},
                                           {"16Gi", 17'179'869'184'000},
                                           {"0", 0}}) {
    EXPECT_EQ(parse_quantity_milli(one.text), one.milli) << one.text;
  }
}

TEST(KubernetesQuantity, IsRefusedIfItIsNone) {
  for (const char* text : {"", ".", "x", "-1", "1.2.3", "1Gb", "1 Gi", "1e99", "9e30", "1ei",
                           "0x10", "1234567890123456789012345678901"}) {
    EXPECT_EQ(parse_quantity_milli(text), std::nullopt) << text;
  }
}

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
