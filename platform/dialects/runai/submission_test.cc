#include "dialects/runai/submission.h"

#include "dialects/runai/runai.h"
#include "dialects/runai/submission_fixture.h"
#include "dialects/runai/volumes.h"
#include "job/spec.h"
#include "job/validate.h"

namespace muster::dialects::runai {

namespace {

using job::Kind;
using job::Purpose;

TEST(RunaiSubmission, TheDocumentsTrainingHasTwoWorkersWithAGpuAndALauncherWithout) {
  const Submission asked = asked_by({"submit-mpi", "dist", "--processes=2", "-g", "1", "-i",
                                     "gcr.io/run-ai-demo/quickstart-distributed"});

  job::JobSpec expected;
  expected.name = "dist";
  expected.kind = Kind::kMpi;
  expected.image = "gcr.io/run-ai-demo/quickstart-distributed";
  expected.workers = 2;
  expected.resources.gpus = 1;
  expected.scheduling.retries = 6;
  expected.folder = "/home/ann/code";
  expected.environment = {{"HOME", "/home/ann"}};
  expected.annotations = {
      {kCommandLine,
       "runai submit-mpi dist --processes=2 -g 1 -i gcr.io/run-ai-demo/quickstart-distributed"},
      {kWorkload, "mpi"}};
  expected.container.writable_root = true;
  expected.replaces_entrypoint = false;
  job::note_inherited({"HOME"}, true, expected);
  EXPECT_EQ(asked.spec, expected);
  EXPECT_TRUE(asked.notes.empty());
  EXPECT_TRUE(job::validate(asked.spec).empty());
}

TEST(RunaiSubmission, TheDocumentsInteractiveJobRunsAShellThatSleeps) {
  const Submission asked = asked_by({"submit-mpi", "dist-int", "--processes=2", "-g", "1", "-i",
                                     "gcr.io/run-ai-demo/quickstart-distributed", "--command=sh",
                                     "--args=-c", "--args=sleep infinity", "--interactive"});

  job::JobSpec expected;
  expected.name = "dist-int";
  expected.kind = Kind::kMpi;
  expected.image = "gcr.io/run-ai-demo/quickstart-distributed";
  expected.command = {"sh", "-c", "sleep infinity"};
  expected.workers = 2;
  expected.resources.gpus = 1;
  expected.scheduling.purpose = Purpose::kBuild;
  expected.folder = "/home/ann/code";
  expected.environment = {{"HOME", "/home/ann"}};
  expected.annotations = {
      {kCommandLine,
       "runai submit-mpi dist-int --processes=2 -g 1 -i gcr.io/run-ai-demo/quickstart-distributed "
       "--command=sh --args=-c '--args=sleep infinity' --interactive"},
      {kWorkload, "mpi"}};
  expected.container.writable_root = true;
  job::note_inherited({"HOME"}, true, expected);
  EXPECT_EQ(asked.spec, expected);
  EXPECT_TRUE(asked.notes.empty());
}

TEST(RunaiSubmission, WordsAfterTheDashesReplaceTheImagesCommandOnlyWithTheFlag) {
  const Words sleeping{"sh", "-c", "sleep 1"};
  const auto spec = [](const Words& words) { return asked_by(mpi_with(words)).spec; };

  EXPECT_EQ(spec({"--command", "--", "sh", "-c", "sleep 1"}).command, sleeping);
  EXPECT_EQ(spec({"--command=true", "--", "sh", "-c", "sleep 1"}).command, sleeping);
  EXPECT_EQ(spec({"--command", "sh", "--args", "-c", "--args", "sleep 1"}).command, sleeping);
  EXPECT_TRUE(spec({"--", "sh", "-c", "sleep 1"}).command.empty());
  EXPECT_EQ(spec({"--", "sh", "-c", "sleep 1"}).arguments, sleeping);
  EXPECT_EQ(spec({"--command=false", "--", "sh", "-c", "sleep 1"}).arguments, sleeping);
  EXPECT_EQ(spec({"--args", "--epochs", "--args", "3"}).arguments, (Words{"--epochs", "3"}));
  EXPECT_TRUE(spec({}).command.empty());
  EXPECT_TRUE(spec({"--command", "--", "sh"}).replaces_entrypoint);
  EXPECT_TRUE(spec({"--command=sh"}).replaces_entrypoint);
  EXPECT_FALSE(spec({"--", "--epochs", "3"}).replaces_entrypoint);
  EXPECT_FALSE(spec({}).replaces_entrypoint);
}

TEST(RunaiSubmission, AnImageIsWritableAndPulledAsRequested) {
  using job::PullPolicy;
  const auto container = [](const Words& words) {
    return asked_by(mpi_with(words)).spec.container;
  };
  const auto pull = [&](const Words& words) { return container(words).pull; };

  EXPECT_EQ(container({}), job::ContainerSpec{.writable_root = true});
  EXPECT_EQ(pull({"--image-pull-policy=IfNotPresent"}), PullPolicy::kIfMissing);
  EXPECT_EQ(pull({"--image-pull-policy=Always"}), PullPolicy::kAlways);
  EXPECT_EQ(pull({"--image-pull-policy", "Never"}), PullPolicy::kNever);
  EXPECT_EQ(pull({"--always-pull-image"}), PullPolicy::kAlways);
  EXPECT_EQ(pull({"--local-image", "--image-pull-policy=Never"}), PullPolicy::kNever);
  EXPECT_EQ(fault_of(mpi_with({"--local-image", "--image-pull-policy=Always"})),
            "--local-image conflicts with another flag; give only --image-pull-policy");
}

TEST(RunaiSubmission, AContainerHasTheRequestedPrivilegesAndSharedMemory) {
  const auto spec = [](const Words& words) { return asked_by(submit_with(words)).spec; };

  EXPECT_TRUE(spec({"--allow-privilege-escalation"}).container.new_privileges);
  EXPECT_FALSE(spec({"--prevent-privilege-escalation"}).container.new_privileges);
  EXPECT_EQ(spec({"--add-capability", "CAP_SYS_PTRACE,KILL", "--add-capability=NET_RAW"})
                .container.capabilities,
            (Words{"SYS_PTRACE", "KILL", "NET_RAW"}));
  EXPECT_EQ(spec({"--large-shm"}).container.shm_bytes, int64_t{64} << 30);
  EXPECT_EQ(spec({"--run-as-user"}).user, "1000:100");
  EXPECT_EQ(fault_of(submit_with({"--add-capability=SYS_PTRAC"})),
            "--add-capability 'SYS_PTRAC' is not a Linux capability; did you mean 'SYS_PTRACE'?");
  EXPECT_EQ(
      fault_of(submit_with({"--allow-privilege-escalation", "--prevent-privilege-escalation"})),
      "--allow-privilege-escalation cannot be used with --prevent-privilege-escalation; give only "
      "one");
}

TEST(RunaiSubmission, InheritedSettingsOfTheCallerAreNoted) {
  const auto spec = [](const Words& words) { return asked_by(mpi_with(words)).spec; };
  const std::set<std::string> home{"HOME"};

  EXPECT_EQ(job::inherited_variables(spec({})), home);
  EXPECT_TRUE(job::inherits_folder(spec({"-a", "note=a"})));
  EXPECT_TRUE(job::inherited_variables(spec({"-e", "HOME=/root"})).empty());
  EXPECT_TRUE(job::inherited_variables(spec({"--create-home-dir"})).empty());
  EXPECT_FALSE(job::inherits_folder(spec({"--working-dir", "/srv"})));
}

TEST(RunaiSubmission, TwoCommandsConflict) {
  EXPECT_EQ(fault_of(mpi_with({"--command=sh", "--", "ls"})),
            "--command 'sh' and the words after '--' are both commands; give only one");
  EXPECT_EQ(fault_of(mpi_with({"--args=-l", "--", "ls"})),
            "--args cannot be used with words after '--'; add the arguments there");
  EXPECT_EQ(fault_of(mpi_with({"--command"})), "--command requires a command after '--'");
  EXPECT_EQ(fault_of(mpi_with({"--command=python train.py"})),
            "--command 'python train.py' is one word, but contains blanks; give: --command -- "
            "python train.py");
}

TEST(RunaiSubmission, AVariableIsNotSplit) {
  const auto environment =
      asked_by(mpi_with({"-e", "A=b=c", "-eB=", "--environment=HOME=/root"})).spec.environment;
  EXPECT_EQ(environment,
            (std::map<std::string, std::string>{{"A", "b=c"}, {"B", ""}, {"HOME", "/root"}}));
}

TEST(RunaiSubmission, AllFaultsOfVariablesAreReported) {
  EXPECT_EQ(read_words(mpi_with({"-e", "TOKEN", "-e", "9A=1"})).faults,
            (Words{"--environment 'TOKEN' has no value; give NAME=VALUE, as in -e NAME=\"$NAME\"",
                   "--environment '9A' is not a variable name; use letters, digits and '_'"}));
}

TEST(RunaiSubmission, AVariableWithoutAValueIsNotTakenFromTheCaller) {
  EXPECT_EQ(fault_of(mpi_with({"-e", "TOKEN"})),
            "--environment 'TOKEN' has no value; give NAME=VALUE, as in -e NAME=\"$NAME\"");
  EXPECT_EQ(fault_of(mpi_with({"-e", "9A=1"})),
            "--environment '9A' is not a variable name; use letters, digits and '_'");
}

TEST(RunaiSubmission, TheNameIsAWordOrAFlagButNotBoth) {
  EXPECT_EQ(asked_by({"submit", "--name", "train", "-i", "img"}).spec.name, "train");
  EXPECT_EQ(fault_of({"submit", "dist", "--name", "train", "-i", "img"}),
            "unexpected arguments [dist]");
}

TEST(RunaiSubmission, WithoutANameTheJobIsNumbered) {
  EXPECT_EQ(asked_by({"submit", "-i", "img"}).name_prefix, "job");
  EXPECT_EQ(asked_by({"submit", "-i", "img", "--job-name-prefix", "sweep"}).name_prefix, "sweep");
  EXPECT_EQ(asked_by(submit_with({})).name_prefix, "");
  EXPECT_EQ(fault_of(submit_with({"--job-name-prefix", "sweep"})),
            "--job-name-prefix cannot be used with a name; give only one");
}

TEST(RunaiSubmission, NamesFollowRunAIsRulesAndMessages) {
  const std::string rule =
      "Job names must consist of lower case alphanumeric characters or '-' and start with an "
      "alphabetic character (e.g. 'my-name',  or 'abc-123')";
  for (const std::string name : {"Dist", "1dist", "dist-", "di_st", "dist.x"}) {
    EXPECT_EQ(fault_of({"submit", name, "-i", "img"}), rule) << name;
  }
  EXPECT_TRUE(read_words({"submit", std::string(48, 'a'), "-i", "img"}).faults.empty());
  EXPECT_EQ(
      fault_of({"submit", std::string(49, 'a'), "-i", "img"}),
      "The len 49 of name " + std::string(49, 'a') + " is too long, it should be less than 49");
}

TEST(RunaiSubmission, AnImageIsRequired) {
  EXPECT_EQ(fault_of({"submit", "train", "--", "ls"}), "-i, --image must be set");
}

TEST(RunaiSubmission, GpusAreWholeOrAFractionOfOne) {
  const auto resources = [](const std::string& gpus) {
    return asked_by(mpi_with({"-g", gpus})).spec.resources;
  };
  EXPECT_EQ(resources("2"), (job::Resources{.gpus = 2}));
  EXPECT_EQ(resources("2.0"), (job::Resources{.gpus = 2}));
  EXPECT_EQ(resources("0.5"), (job::Resources{.gpu_share_milli = 500}));
  EXPECT_EQ(resources("0"), job::Resources());
  for (const std::string text : {"1.5", "-1", "many", "0.0001", "99999999999999999999"}) {
    EXPECT_EQ(fault_of(mpi_with({"-g", text})),
              "--gpu '" + text + "' is neither a whole number nor a fraction such as 0.5");
  }
}

TEST(RunaiSubmission, GpuMemoryIsAtLeastAHundredMegabytes) {
  EXPECT_EQ(asked_by(mpi_with({"--gpu-memory", "5G"})).spec.resources.gpu_memory_bytes,
            int64_t{5} << 30);
  EXPECT_EQ(fault_of(mpi_with({"--gpu-memory", "10M"})), "gpu memory must be greater than 100Mb");
}

TEST(RunaiSubmission, GpuRequestsOfDifferentTypesConflict) {
  EXPECT_EQ(fault_of(mpi_with({"-g", "1", "--gpu-memory", "5G"})),
            "unexpected to accept both gpu and gpu-memory flag. please use only one of them");
  EXPECT_EQ(fault_of(mpi_with({"--mig", "9g"})), "unsupported mig device: 9g");
  EXPECT_EQ(read_words(mpi_with({"--gpu-memory=5G", "-g=1", "--mig=1g.5gb"})).faults,
            (Words{"unexpected to accept both gpu and gpu-memory flag. please use only one of them",
                   "unexpected to accept both gpu and mig flag. please use only one of them",
                   "unexpected to accept both gpu-memory and mig flag. please use only one of them",
                   "--mig is not supported: GPUs are not cut into MIG devices; request a fraction "
                   "with --gpu 0.5, or GPU memory with --gpu-memory"}));
}

TEST(RunaiSubmission, ALimitAloneIsAlsoTheRequest) {
  const Submission asked =
      asked_by(mpi_with({"--cpu-limit", "2", "--memory", "1G", "--memory-limit", "4G"}));
  EXPECT_EQ(asked.spec.resources.cpu_milli, 2000);
  EXPECT_EQ(asked.spec.resources.memory_bytes, int64_t{1} << 30);
  EXPECT_EQ(asked.spec.annotations.at("runai/cpu-limit"), "2");
  EXPECT_EQ(asked.spec.annotations.at("runai/memory-limit"), "4G");
  EXPECT_EQ(asked.notes,
            (Words{"--cpu-limit: tasks get CPU time in proportion to their requests; the limit is "
                   "used as the request",
                   "--memory-limit: the limit is the 1G of --memory; a task that uses more is "
                   "killed"}));
  const Submission of_cpu = asked_by(mpi_with({"--cpu", "1", "--cpu-limit", "2"}));
  EXPECT_EQ(of_cpu.notes,
            (Words{"--cpu-limit: tasks get CPU time in proportion to their requests"}));
  const Submission of_memory = asked_by(mpi_with({"--memory-limit", "4G"}));
  EXPECT_EQ(of_memory.spec.resources.memory_bytes, int64_t{4} << 30);
  EXPECT_EQ(of_memory.notes, Words{}) << "the claim is enforced";
  EXPECT_EQ(asked_by(mpi_with({"--memory", "1024M", "--memory-limit", "1G"})).notes, Words{});
  EXPECT_EQ(fault_of(mpi_with({"--cpu", "500m", "--cpu-limit", "0.25"})),
            "--cpu-limit 0.25 is less than the 500m of --cpu");
}

TEST(RunaiSubmission, ThePurposeDependsOnInteractiveAndPreemptible) {
  const auto scheduling = [](const Words& words) {
    return asked_by(submit_with(words)).spec.scheduling;
  };
  EXPECT_EQ(scheduling({}).purpose, Purpose::kTrain);
  EXPECT_EQ(scheduling({"--inference"}).purpose, Purpose::kInference);
  EXPECT_EQ(scheduling({"--interactive"}).purpose, Purpose::kBuild);
  EXPECT_FALSE(scheduling({"--interactive"}).preemptible.has_value());
  EXPECT_EQ(scheduling({"--interactive", "--preemptible"}).preemptible, true);
  EXPECT_EQ(scheduling({"--inference", "--preemptible"}).preemptible, true);
  EXPECT_EQ(asked_by(submit_with({"--inference", "--preemptible"})).notes,
            Words{"--preemptible: the job may be evicted when other jobs need its resources"});
  EXPECT_EQ(asked_by(submit_with({"--preemptible"})).notes,
            Words{"--preemptible: has no effect: training jobs are always preemptible"});
  EXPECT_EQ(scheduling({"--interactive=false"}).purpose, Purpose::kTrain);
  EXPECT_EQ(fault_of(submit_with({"--interactive", "--inference"})),
            "--inference cannot be used with --interactive");
}

TEST(RunaiSubmission, RunsAsTheGivenUser) {
  const auto user = [](const Words& words) { return asked_by(submit_with(words)).spec.user; };
  EXPECT_EQ(user({"--run-as-uid", "316498"}), "316498");
  EXPECT_EQ(user({"--run-as-uid", "316498", "--run-as-gid", "30133"}), "316498:30133");
  EXPECT_EQ(fault_of(submit_with({"--run-as-gid", "5"})), "--run-as-gid requires --run-as-uid");
  EXPECT_EQ(fault_of(submit_with({"--run-as-uid", "5", "--run-as-user"})),
            "--run-as-uid cannot be used with --run-as-user; give only one");
  EXPECT_EQ(fault_of(submit_with({"--run-as-uid", "ann"})).substr(0, 18), "--run-as-uid 'ann'");
}

TEST(RunaiSubmission, AnInteractiveJobIsNotRetried) {
  const auto retries = [](const Words& words) {
    return asked_by(mpi_with(words)).spec.scheduling.retries;
  };
  EXPECT_EQ(retries({}), 6);
  EXPECT_EQ(retries({"--backoff-limit", "2"}), 2);
  EXPECT_EQ(retries({"--backoffLimit=3"}), 3);
  EXPECT_EQ(retries({"--interactive"}), 0);
  const Submission asked = asked_by(mpi_with({"--interactive", "--backoff-limit=2"}));
  EXPECT_EQ(asked.spec.scheduling.retries, 0);
  EXPECT_EQ(asked.notes, Words{"--backoff-limit: an interactive job is never retried"});
  EXPECT_EQ(fault_of(mpi_with({"--backoff-limit=-1"})),
            "--backoff-limit -1 is out of range; give 0 to 1000");
}

TEST(RunaiSubmission, ProcessesAreWorkers) {
  EXPECT_EQ(asked_by(mpi_with({})).spec.workers, 1);
  EXPECT_EQ(asked_by(mpi_with({"--num-processes", "3"})).spec.workers, 3);
  EXPECT_EQ(fault_of(mpi_with({"--processes=2", "--num-processes=3"})),
            "--num-processes cannot be used with --processes: both stand for the same number");
  EXPECT_EQ(fault_of(mpi_with({"--processes=0"})).substr(0, 31), "--processes 0 is out of range; ");
  EXPECT_EQ(fault_of(mpi_with({"--processes=two"})), "--processes 'two' is not a whole number");
}

TEST(RunaiSubmission, OnlyOneRunOfAJobIsSupported) {
  EXPECT_TRUE(read_words(submit_with({"--completions=1", "--parallelism=1"})).faults.empty());
  EXPECT_EQ(fault_of(submit_with({"--completions=5"})),
            "--completions: only 1 is supported; submit a job for each run");
  EXPECT_EQ(fault_of(submit_with({"--parallelism=2"})),
            "--parallelism of more than 1 requires --completions");
  EXPECT_EQ(fault_of(submit_with({"--parallelism=1", "--elastic"})),
            "--elastic cannot be used with --parallelism");
}

TEST(RunaiSubmission, PlacementUsesPoolsAndTheLastPartOfTopologyKeys) {
  const job::Scheduling scheduling =
      asked_by(mpi_with({"--node-pools", "a100,v100", "--preferred-pod-topology-key",
                         "topology.kubernetes.io/zone", "--required-pod-topology-key", "rack"}))
          .spec.scheduling;
  EXPECT_EQ(scheduling.node_pools, (Words{"a100", "v100"}));
  EXPECT_EQ(scheduling.preferred_topology, "zone");
  EXPECT_EQ(scheduling.required_topology, "rack");
}

TEST(RunaiSubmission, LabelsAnnotationsAndTheUserAreStored) {
  const job::JobSpec spec =
      asked_by(mpi_with({"-l", "team=vision", "-l", "urgent", "-a", "note=a=b", "-u", "ann"})).spec;
  EXPECT_EQ(spec.labels, (std::map<std::string, std::string>{{"team", "vision"}, {"urgent", ""}}));
  EXPECT_EQ(spec.annotations.at("note"), "a=b");
  EXPECT_EQ(spec.annotations.at(kUser), "ann");
  EXPECT_EQ(fault_of(mpi_with({"-a", "note"})),
            "--annotation 'note' has no value; give NAME=VALUE");
}

TEST(RunaiSubmission, TheWorkingFolderIsTheCallersOrTheGivenOne) {
  const auto folder = [](const Words& words) { return asked_by(submit_with(words)).spec.folder; };
  EXPECT_EQ(folder({}), "/home/ann/code");
  EXPECT_EQ(folder({"--working-dir", "/workspace/"}), "/workspace");
  EXPECT_EQ(folder({"--working-dir", "../data"}), "/home/ann/data");
}

TEST(RunaiSubmission, TheProjectIsTheGivenOneOrTheOneInUse) {
  EXPECT_EQ(asked_by(submit_with({"-p", "team-a"})).spec.project, "team-a");
  EXPECT_EQ(asked_by(submit_with({})).spec.project, "default");
  const Words words = submit_with({});
  const cli::Arguments arguments = cli::sort_arguments(command_tree(), plain_words(words));
  cli::FlagReader reader(arguments);
  cli::Caller caller = caller_in_home();
  caller.project = "team-b";
  EXPECT_EQ(read_submission(arguments, reader, caller, words, false).spec.project, "team-b");
}

TEST(RunaiSubmission, ARepositoryIsClonedToItsTarget) {
  const Submission asked = asked_by(submit_with(
      {"--git-sync", "source=https://x.org/a.git,branch=dev,username=ann,password=pass"}));
  ASSERT_TRUE(asked.git_sync.has_value());
  EXPECT_EQ(asked.git_sync->source.where, "https://x.org/a.git");
  EXPECT_EQ(asked.git_sync->source.ref, "dev");
  EXPECT_EQ(asked.git_sync->source.username, "ann");
  EXPECT_EQ(asked.git_sync->source.password, "pass");
  EXPECT_EQ(asked.git_target, "/code");
  EXPECT_EQ(asked.spec.volumes,
            (std::vector<job::Volume>{
                {.kind = job::Volume::Kind::kTree, .source = "", .target = "/code"}}));
}

TEST(RunaiSubmission, ARevisionTakesPrecedenceOverABranch) {
  const Submission asked = asked_by(
      submit_with({"--git-sync", "source=https://x.org/a.git,branch=dev,rev=v1,target=/src/"}));
  EXPECT_EQ(asked.git_sync->source.ref, "v1");
  EXPECT_EQ(asked.git_target, "/src");
}

TEST(RunaiSubmission, ARepositoryRequiresAnAddress) {
  EXPECT_EQ(fault_of(submit_with({"--git-sync", "branch=dev"})),
            "git sync must contain Repository");
  EXPECT_EQ(fault_of(submit_with({"--git-sync", "source=a,brnch=dev"})),
            "--git-sync has no key 'brnch'; did you mean 'branch'?");
}

TEST(RunaiSubmission, PasswordsAppearOnlyWhereTheyAreUsed) {
  const std::string git = "source=https://x.org/a.git,password=open,sesame,branch=dev";
  for (const Words& words :
       {submit_with({"--git-sync", git}), submit_with({"--git-sync=" + git})}) {
    const ReadSubmission read = read_words(words);
    const std::string line = read.submission.spec.annotations.at(kCommandLine);
    EXPECT_EQ(line.find("open"), std::string::npos) << line;
    EXPECT_EQ(line.find("sesame"), std::string::npos) << line;
    EXPECT_NE(line.find("password=,branch=dev"), std::string::npos) << line;
    for (const std::string& fault : read.faults) {
      EXPECT_EQ(fault.find("sesame"), std::string::npos) << fault;
    }
  }
  EXPECT_EQ(command_line_of({"submit", "--s3", "bucket=b,key=k,secret=s"}),
            "runai submit --s3 bucket=b,key=,secret=");
}

TEST(RunaiSubmission, EveryFaultIsReportedAtOnce) {
  const Words faults = read_words({"submit-mpi", "Dist", "--procesess=2", "-g", "x", "-e", "A",
                                   "--memory", "lots", "-v", "/data", "--node-type", "dgx", "-t"})
                           .faults;
  EXPECT_EQ(
      faults,
      (Words{"unknown flag '--procesess'; did you mean '--processes'?", "-i, --image must be set",
             "--node-type is not supported: nodes have no types; choose nodes with --node-pools",
             "--stdin is required for containers with -t/--tty=true",
             "Job names must consist of lower case alphanumeric characters or '-' and start "
             "with an alphabetic character (e.g. 'my-name',  or 'abc-123')",
             "--environment 'A' has no value; give NAME=VALUE, as in -e NAME=\"$NAME\"",
             "--gpu 'x' is neither a whole number nor a fraction such as 0.5",
             "--memory 'lots' is not a size such as 512M or 16G",
             "--volume '/data' has no target path; write HOST:PATH"}));
}

}  // namespace

namespace {

TEST(RunaiFlagsWithoutEffect, AreNotedAndDoNotChangeTheJob) {
  const std::vector<std::pair<Words, std::string>> table{
      {{"--host-ipc"}, "--host-ipc: every task has its own IPC namespace"},
      {{"--host-network"}, "--host-network: the server chooses the network of tasks"},
      {{"--port=30000:8888"}, "--port: no service is created; tasks listen on their machine"},
      {{"--address=1.2.3.4"}, "--address: no service is created; tasks listen on their machine"},
      {{"-s", "nodeport"}, "--service-type: no service is created; tasks listen on their machine"},
      {{"--prevent-privilege-escalation"},
       "--prevent-privilege-escalation: tasks never gain privileges"},
      {{"--extended-resource=rdma/hca=1"},
       "--extended-resource: applies only on Kubernetes; there, set MUSTER_ENGINE=kubernetes"},
      {{"--toleration=operator=Exists,key=x,seconds=30"},
       "--toleration: applies only on Kubernetes; there, set MUSTER_ENGINE=kubernetes"},
      {{"--elastic"}, "--elastic: the job keeps the GPUs that it requests"},
      {{"--mount-propagation"},
       "--mount-propagation: file systems that the host mounts after the start may be missing"},
  };
  const job::JobSpec plain = asked_by(submit_with({})).spec;
  for (const auto& [flags, note] : table) {
    Submission asked = asked_by(submit_with(flags));
    EXPECT_EQ(asked.notes, Words{note});
    asked.spec.annotations = plain.annotations;
    EXPECT_EQ(asked.spec, plain) << note;
  }
}

TEST(RunaiFlagsOfACluster, ApplyOnKubernetes) {
  const Submission asked =
      asked_by(submit_with({"--toleration=operator=Exists",
                            "--toleration=operator=Exists,key=gpu,effect=NoSchedule,seconds=30",
                            "--toleration=operator=Equal,key=team,value=a",
                            "--extended-resource=rdma/hca=1"}),
               true);
  EXPECT_EQ(asked.notes, Words{});
  EXPECT_EQ(asked.spec.kubernetes.tolerations, (Words{"*", "gpu:NoSchedule", "team=a"}));
  EXPECT_EQ(asked.spec.kubernetes.devices, (std::map<std::string, std::string>{{"rdma/hca", "1"}}));
}

TEST(RunaiFlagsOfACluster, HaveTheirFaultsReportedOnce) {
  const auto faults = [](const std::string& flag) {
    return read_words(submit_with({flag}), true).faults;
  };
  EXPECT_EQ(faults("--toleration=key=x"),
            Words{"--toleration must contain operator=Equal or operator=Exists"});
  EXPECT_EQ(faults("--toleration=operator=Equal,value=a"),
            Words{"--toleration operator=Equal requires key="});
  EXPECT_EQ(faults("--toleration=operator=Exists,effect=NoExecute"),
            Words{"--toleration effect= requires key=; without both, all taints are tolerated"});
  EXPECT_EQ(faults("--toleration=operator=Exists,key=x,effect=Never"),
            Words{"--toleration 'x:Never' is not KEY[=VALUE][:EFFECT], as in "
                  "dedicated=train:NoSchedule; the effects are NoSchedule, PreferNoSchedule and "
                  "NoExecute"});
  EXPECT_EQ(faults("--extended-resource=rdma"),
            Words{"--extended-resource 'rdma' has no value; write NAME=N"});
  EXPECT_EQ(faults("--extended-resource=rdma=1"),
            Words{"--extended-resource 'rdma' is not the name of a resource such as rdma/hca"});
}

TEST(RunaiKeepFor, ATimeThatIsTooLongIsAFaultOfTheFlagThatWasUsed) {
  EXPECT_EQ(fault_of(submit_with({"--ttl-after-finish", "100000h"})),
            "--ttl-after-finish: give a time between 0s and 3650d");
  EXPECT_EQ(fault_of(submit_with({"--auto-deletion-time-after-completion", "100000h"})),
            "--auto-deletion-time-after-completion: give a time between 0s and 3650d");
}

TEST(RunaiKeepFor, IsTheTimeForWhichAnEndedJobIsKept) {
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
            (Words{"--master-extended-resource: the master has those of --extended-resource",
                   "--master-no-pvcs: the master has all volumes of the job"}));
}

TEST(RunaiFlagsWithoutEffect, StillHaveTheirValuesChecked) {
  const std::vector<std::pair<Words, std::string>> table{
      {{"--image-pull-policy=always"},
       "--image-pull-policy 'always' is invalid: expected one of Always, IfNotPresent, Never; did "
       "you mean 'Always'?"},
      {{"-s", "ingres"},
       "--service-type 'ingres' is invalid: expected one of portforward, loadbalancer, nodeport, "
       "ingress; did you mean 'ingress'?"},
      {{"--port=http"}, "--port 'http' is neither PORT nor HOST:PORT"},
      {{"--port=0"}, "--port '0' is neither PORT nor HOST:PORT"},
      {{"--ttl-after-finish=soon"},
       "--ttl-after-finish 'soon' is not a time such as 30s, 2m or 1h30m"},
      {{"--ttl-after-finish=5m3"},
       "--ttl-after-finish '5m3' is not a time such as 30s, 2m or 1h30m"},
      {{"--ttl-after-finish=9223372036854775807ms1ms"},
       "--ttl-after-finish '9223372036854775807ms1ms' is not a time such as 30s, 2m or 1h30m"},
      {{"--extended-resource=rdma"}, "--extended-resource 'rdma' has no value; write NAME=N"},
      {{"--toleration=key=x"}, "--toleration must contain operator=Equal or operator=Exists"},
      {{"--toleration=operator=Exists,seconds=soon"},
       "--toleration seconds: 'soon' is not a whole number"},
      {{"--loglevel=loud"},
       "--loglevel 'loud' is invalid: expected one of info, debug, warn, error"},
  };
  for (const auto& [flags, fault] : table) EXPECT_EQ(fault_of(submit_with(flags)), fault);
}

TEST(RunaiFlagsWithoutEffect, AreRefusedIfAProgramNeedsThem) {
  EXPECT_EQ(fault_of(submit_with({"--template=big"})),
            "--template templates are not supported; give the values as flags");
  EXPECT_EQ(fault_of(submit_with({"--node-type=dgx"})),
            "--node-type is not supported: nodes have no types; choose nodes with --node-pools");
  EXPECT_EQ(fault_of(submit_with({"--jupyter"})),
            "--jupyter is not supported: ports of a job are not exposed; run the notebook with "
            "--interactive and its command after '--'");
  EXPECT_EQ(fault_of(submit_with({"--tty"})),
            "--stdin is required for containers with -t/--tty=true");
}

TEST(RunaiFlagsWithoutEffect, DoNotIncludeTheFlagsForTerminals) {
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
