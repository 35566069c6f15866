#include "dialects/runai/no_effect.h"

#include "dialects/runai/submission_fixture.h"

namespace muster::dialects::runai {

namespace {

TEST(RunaiFlagsWithoutEffect, AreNotedAndTheJobIsTheSame) {
  const std::vector<std::pair<Words, std::string>> table{
      {{"--host-ipc"}, "--host-ipc: tasks keep an IPC space of their own"},
      {{"--host-network"}, "--host-network: which network tasks use, the server decides"},
      {{"--port=30000:8888"}, "--port: no service is made; tasks listen on their machine"},
      {{"--address=1.2.3.4"}, "--address: no service is made; tasks listen on their machine"},
      {{"-s", "nodeport"}, "--service-type: no service is made; tasks listen on their machine"},
      {{"--prevent-privilege-escalation"},
       "--prevent-privilege-escalation: tasks gain no rights in any case"},
      {{"--extended-resource=rdma/hca=1"},
       "--extended-resource: nothing is claimed but GPUs, CPUs and memory"},
      {{"--toleration=operator=Exists,key=x,seconds=30"}, "--toleration: nodes have no taints"},
      {{"--elastic"}, "--elastic: the job keeps the GPUs that it asks for"},
      {{"--mount-propagation"},
       "--mount-propagation: what the host mounts after the start may not be seen"},
  };
  const job::JobSpec plain = asked_by(submit_with({})).spec;
  for (const auto& [flags, note] : table) {
    Submission asked = asked_by(submit_with(flags));
    EXPECT_EQ(asked.notes, Words{note});
    asked.spec.annotations = plain.annotations;
    EXPECT_EQ(asked.spec, plain) << note;
  }
}

TEST(RunaiKeepFor, IsHowLongTheJobIsKeptAfterItsEnd) {
  using std::chrono::minutes;
  const auto kept = [](const Words& flags) { return asked_by(submit_with(flags)).spec.keep_for; };

  EXPECT_EQ(kept({}), std::nullopt);
  EXPECT_EQ(kept({"--ttl-after-finish=1h30m"}), minutes(90));
  EXPECT_EQ(kept({"--ttl-after-finish", "0s"}), minutes(0));
  EXPECT_EQ(kept({"--auto-deletion-time-after-completion", "5m"}), minutes(5));
}

TEST(RunaiFlagsWithoutEffect, OfAMasterAreNotedToo) {
  EXPECT_EQ(asked_by(dist_with("mpi", {"--clean-pod-policy=Running"})).notes, Words{});
  EXPECT_EQ(asked_by(dist_with("mpi", {"--clean-pod-policy=None"})).notes,
            Words{"--clean-pod-policy None: workers end with the job, which stays until 'runai "
                  "delete'"});
  EXPECT_EQ(asked_by(dist_with("tf", {"--master-no-pvcs", "--master-extended-resource=a=1"})).notes,
            (Words{"--master-extended-resource: nothing is claimed but GPUs, CPUs and memory",
                   "--master-no-pvcs: the master finds all volumes of the job"}));
}

TEST(RunaiFlagsWithoutEffect, AreHeldToTheirValuesAllTheSame) {
  const std::vector<std::pair<Words, std::string>> table{
      {{"--image-pull-policy=always"},
       "--image-pull-policy 'always' is none of Always IfNotPresent Never; did you mean 'Always'?"},
      {{"-s", "ingres"},
       "--service-type 'ingres' is none of portforward loadbalancer nodeport ingress; did you mean "
       "'ingress'?"},
      {{"--port=http"}, "--port 'http' is neither PORT nor HOST:PORT"},
      {{"--port=0"}, "--port '0' is neither PORT nor HOST:PORT"},
      {{"--ttl-after-finish=soon"},
       "--ttl-after-finish 'soon' is not a time such as 30s, 2m or 1h30m"},
      {{"--ttl-after-finish=5m3"},
       "--ttl-after-finish '5m3' is not a time such as 30s, 2m or 1h30m"},
      {{"--extended-resource=rdma"}, "--extended-resource 'rdma' has no value; write NAME=N"},
      {{"--toleration=key=x"}, "--toleration must contain operator=Equal or operator=Exists"},
      {{"--toleration=operator=Exists,seconds=soon"},
       "--toleration seconds: 'soon' is not a whole number"},
      {{"--loglevel=loud"}, "--loglevel 'loud' is none of info debug warn error"},
  };
  for (const auto& [flags, fault] : table) EXPECT_EQ(fault_of(submit_with(flags)), fault);
}

TEST(RunaiFlagsWithoutEffect, AreRefusedWhereAProgramWouldFailForIt) {
  EXPECT_EQ(fault_of(submit_with({"--template=big"})),
            "--template there are no templates here; say its values as flags");
  EXPECT_EQ(fault_of(submit_with({"--node-type=dgx"})),
            "--node-type nodes have no types here; say where it may run with --node-pools");
  EXPECT_EQ(fault_of(submit_with({"--jupyter"})),
            "--jupyter is not served here: no port of a job is opened to others; run the notebook "
            "with --interactive, and its own command behind '--'");
  EXPECT_EQ(fault_of(submit_with({"--tty"})),
            "--stdin is required for containers with -t/--tty=true");
}

TEST(RunaiFlagsWithoutEffect, AreNotThoseForWhoeverSitsBeforeTheJob) {
  const Submission asked = asked_by(submit_with({"--attach", "-t"}));
  EXPECT_TRUE(asked.attach);
  EXPECT_TRUE(asked.spec.input && asked.spec.terminal);
  EXPECT_TRUE(asked.notes.empty());
  const Submission reads = asked_by(submit_with({"--stdin"}));
  EXPECT_TRUE(reads.spec.input && !reads.spec.terminal);
  const Submission none = asked_by(submit_with({}));
  EXPECT_FALSE(none.spec.input || none.spec.terminal);
}

}  // namespace

}  // namespace muster::dialects::runai
