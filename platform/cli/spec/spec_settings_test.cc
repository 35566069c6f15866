#include <gtest/gtest.h>

#include "cli/common/output.h"
#include "cli/jobs/jobs.h"
#include "cli/spec/spec_file.h"
#include "cli/test_call.h"
#include "job/spec_table.h"

namespace muster::cli::spec {

namespace {

constexpr const char* kJobFileText = "name: one\nkind: mpi\nworkers: 2\ncommand: [ls]\n";

const job::JobSpec kSettingsDefaults{.folder = "/home/ada"};

/// The faults, or "" for a valid spec.
std::string refusal_of_settings(const std::vector<std::string>& settings) {
  const auto spec =
      parse_spec_file(kJobFileText, "job.yaml", kSettingsDefaults, {.settings = settings});
  return spec ? "" : spec.error().to_string();
}

TEST(Settings, OverrideTheFile) {
  const auto spec = parse_spec_file(
      kJobFileText, "job.yaml", kSettingsDefaults,
      {.name = "two",
       .settings = {"workers=4", "scheduling.priority=60", "environment.LR=a=b", "grace=90s",
                    "scheduling.node_pools=[a100, h100]", "resources.memory=2Gi",
                    "volumes=[data:/data:ro]", "leader.resources.cpus=2", "folder=work"}});

  ASSERT_TRUE(spec) << spec.error().to_string();
  EXPECT_EQ(spec->name, "two");
  EXPECT_EQ(spec->workers, 4);
  EXPECT_EQ(spec->scheduling.priority, 60);
  EXPECT_EQ(spec->environment.at("LR"), "a=b");
  EXPECT_EQ(spec->grace, std::chrono::seconds(90));
  EXPECT_EQ(spec->scheduling.node_pools, (std::vector<std::string>{"a100", "h100"}));
  EXPECT_EQ(spec->resources.memory_bytes, int64_t{2} << 30);
  EXPECT_EQ(spec->volumes,
            (std::vector<job::Volume>{
                {.source = "/home/ada/data", .target = "/data", .read_only = true}}));
  EXPECT_EQ(spec->folder, "/home/ada/work");
}

TEST(Settings, ReportFaults) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"wrokers=4"}, "--set: 'wrokers' is an unknown key; did you mean 'workers'?"},
      {{"sheduling.priority=4"},
       "'sheduling.priority' is an unknown key; did you mean 'scheduling."},
      {{"workers=many"}, "--set: 'workers': 'many' is not a whole number"},
      {{"workers=3", "workers=4"}, "--set: 'workers' is set twice"},
      {{"workers"}, "--set: 'workers' is not KEY=VALUE"},
      {{"=4"}, "--set: '=4' is not KEY=VALUE"},
      {{"kind=torch"}, "'kind' cannot be set"},
      {{"name=x"}, "'name' cannot be set"},
      {{"scheduling.node_pools=[a"}, "'scheduling.node_pools': '[a' is not valid YAML"},
      {{"resources={gpus: 1, gpus: 2}"}, "'resources.gpus' is given twice"},
      {{"grace=soon"}, "'grace': 'soon' is not a time such as 30s"},
      {{"workers=0"}, "--set: 'workers': 0 is out of range; give 1 to 1000"},
      {{"sandbox=docker"}, "'sandbox': 'docker' is invalid: expected one of bubblewrap, none"},
  };
  for (const auto& [settings, fault] : cases) {
    EXPECT_NE(refusal_of_settings(settings).find(fault), std::string::npos)
        << refusal_of_settings(settings) << "\nshould say: " << fault;
  }
}

TEST(Settings, ReportAllFaultsAtOnce) {
  const std::string text = refusal_of_settings({"wrokers=4", "grace=soon", "sandbox=docker"});

  EXPECT_NE(text.find("3 faults"), std::string::npos) << text;
}

TEST(Settings, OverrideTheFlagsOfACommandLine) {
  const job::JobSpec spec = parsed<jobs::SubmitCommand>(
                                with_program({"submit", "single", "a"},
                                             {"--cpus", "2", "--set", "resources.cpus=0.5", "--set",
                                              "scheduling.retries=3", "--set", "environment.A=1"}))
                                .spec;

  EXPECT_EQ(spec.resources.cpu_milli, 500);
  EXPECT_EQ(spec.scheduling.retries, 3);
  EXPECT_EQ(spec.environment.at("A"), "1");
}

job::JobSpec rich_spec() {
  return {.name = "mnist",
          .project = "vision",
          .kind = job::Kind::kGrpc,
          .image = "tensorflow:2",
          .container = {.pull = job::PullPolicy::kNever,
                        .capabilities = {"SYS_PTRACE"},
                        .shm_bytes = (int64_t{1} << 30) + 1},
          .slurm = {.partition = "gpu,long"},
          .command = {"python3", "yes", "007", "a: b", ""},
          .arguments = {"--epochs", "2"},
          .workers = 2,
          .resources = {.gpus = 1, .cpu_milli = 1500, .memory_bytes = int64_t{3} << 30},
          .leader = {.resources = {.gpu_share_milli = 250}, .environment = {{"V", "1"}}},
          .parameter_servers = 1,
          .parameter_server = {.command = {"sh", "-c", "serve\n"}},
          .volumes = {{.source = "/data", .target = "/d", .read_only = true},
                      {.kind = job::Volume::Kind::kStorage, .source = "keep", .target = "/k"}},
          .held = true,
          .keep_for = std::chrono::hours(36),
          .labels = {{"team", "vision"}, {"tag", ""}},
          .scheduling = {.priority = 60,
                         .preemptible = true,
                         .node_pools = {"a100"},
                         .time_limit = std::chrono::milliseconds(90'500),
                         .retries = 2,
                         .retry_rules = {{.exit_code = 42, .action = job::RetryRule::Action::kFail},
                                         {.log_pattern = "Xid \\d+"}}},
          .environment = {{"A", "1"}, {"B", "yes"}, {"C", ""}},
          .secrets = {{.name = "KEY", .variable = "KEY"}, {.name = "CA", .file = "tls/ca.pem"}},
          .folder = "/home/ada",
          .start_timeout = std::chrono::milliseconds(1500)};
}

TEST(SpecAsAJobFile, CanBeReadBackUnchanged) {
  const std::string yaml = json_to_yaml(record::to_json(rich_spec(), record::Form::kHuman));

  const auto again = parse_spec_file(yaml, "job.yaml", {.folder = "/elsewhere"});

  ASSERT_TRUE(again) << again.error().to_string() << "\n" << yaml;
  EXPECT_EQ(*again, rich_spec()) << yaml;
}

}  // namespace

}  // namespace muster::cli::spec
