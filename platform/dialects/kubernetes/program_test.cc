#include "dialects/kubernetes/program.h"

#include <gtest/gtest.h>

#include "dialects/kubernetes/test_files.h"

namespace muster::dialects::kubernetes {
namespace {

TEST(KubernetesProgram, HasItsCommandThenItsArguments) {
  const job::JobSpec spec =
      spec_of(simple_job({"command: [python, train.py]", "args: [--epochs, 3]"}));
  EXPECT_EQ(spec.command, (Lines{"python", "train.py"}));
  EXPECT_EQ(spec.arguments, (Lines{"--epochs", "3"}));
  EXPECT_TRUE(spec.replaces_entrypoint);
}

TEST(KubernetesProgram, IsTheImagesWithArgumentsOnly) {
  const job::JobSpec spec = spec_of(simple_job({"args: [--epochs, '3']"}));
  EXPECT_EQ(spec.command, Lines{});
  EXPECT_EQ(spec.arguments, (Lines{"--epochs", "3"}));
}

TEST(KubernetesProgram, HasReferencesToVariablesReplaced) {
  struct Case {
    const char* text;
    const char* expected;
  };
  for (const Case& one : std::vector<Case>{{"$(A)", "one"},
                                           {"x-$(A)-y", "x-one-y"},
                                           {"$(A)$(B)", "oneone/two"},
                                           {"$$(A)", "$(A)"},
                                           {"$$$(A)", "$one"},
                                           {"$(UNKNOWN)", "$(UNKNOWN)"},
                                           {"$(A", "$(A"},
                                           {"$A", "$A"},
                                           {"100$", "100$"},
                                           {"$(hostname -i)", "$(hostname -i)"}}) {
    const job::JobSpec spec = spec_of(simple_job(
        {"command: [echo, '" + std::string(one.text) + "']",
         "env: [{name: A, value: one}, {name: B, value: $(A)/two}, {name: C, value: $(LATER)}, "
         "{name: LATER, value: x}]"}));
    EXPECT_EQ(spec.command.back(), one.expected) << one.text;
    EXPECT_EQ(spec.environment,
              (Settings{{"A", "one"}, {"B", "one/two"}, {"C", "$(LATER)"}, {"LATER", "x"}}));
  }
}

TEST(KubernetesProgram, ReadsValuesOfItsTaskThroughAShell) {
  const job::JobSpec spec = spec_of(simple_job(
      {"command: [./train]", "args: ['--rank=$(JOB_COMPLETION_INDEX)', 'it''s', '`$x`']"}, {},
      {"completionMode: Indexed", "completions: 2", "parallelism: 2"}));
  EXPECT_EQ(spec.command, (Lines{"sh", "-c",
                                 "exec ./train \"--rank=${JOB_COMPLETION_INDEX}\" 'it'\\''s' "
                                 "'`$x`'"}));
  EXPECT_EQ(spec.arguments, Lines{});
}

TEST(KubernetesProgram, ExportsVariablesWithValuesOfItsTask) {
  const job::JobSpec spec = spec_of(simple_job(
      {"command: [./train]", "args: [-v]",
       "env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: WHERE, value: "
       "'$(POD)/\"x\"'}]"}));
  EXPECT_EQ(spec.command,
            (Lines{"sh", "-c",
                   "POD=\"${MUSTER_JOB}-${MUSTER_TASK}\"; export POD; "
                   "WHERE=\"${MUSTER_JOB}-${MUSTER_TASK}/\\\"x\\\"\"; export WHERE; exec \"$@\"",
                   "sh", "./train"}));
  EXPECT_EQ(spec.arguments, Lines{"-v"});
}

TEST(KubernetesProgram, NeedsACommandToReadValuesOfItsTask) {
  EXPECT_EQ(
      faults_of(
          simple_job({"env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]"})),
      (Lines{"spec.template.spec.containers[0].env[0]: has a value that exists only in "
             "the running task, so a shell must set it before the command; give the container a "
             "command"}));
}

TEST(KubernetesProgram, PassesASecretAsAVariable) {
  const job::JobSpec spec = spec_of(simple_job(
      {"command: [sh, -c, 'echo $(TOKEN)']",
       "env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: hf-secret, key: token}}}]"}));
  EXPECT_EQ(
      spec.secrets,
      (std::vector<job::SecretUse>{{.name = "hf_secret_token", .variable = "TOKEN", .file = ""}}));
  EXPECT_EQ(spec.command, (Lines{"sh", "-c", "exec sh -c \"echo ${TOKEN}\""}));
}

TEST(KubernetesProgram, IsBoundedWhateverItsVariablesContain) {
  std::string list = "env: [{name: V0, value: 0123456789abcdef}";
  for (int i = 1; i < 60; ++i) {
    const std::string before = "$(V" + std::to_string(i - 1) + ")";
    list += ", {name: V" + std::to_string(i) + ", value: " + before + before + "}";
  }
  const Lines faults = faults_of(simple_job({"command: [ls]", list + "]"}));
  ASSERT_FALSE(faults.empty());
  EXPECT_EQ(faults.front(),
            "spec.template.spec.containers[0].env[13]: makes the environment longer than 256 KiB");
}

}  // namespace
}  // namespace muster::dialects::kubernetes
