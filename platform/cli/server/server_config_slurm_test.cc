// A server's configuration for Slurm.
#include <gtest/gtest.h>

#include "cli/server/server.h"
#include "config/server_config.h"
#include "config/test_server_config.h"

namespace muster::cli::server {

namespace {

/// The options from these flags, and their faults.
config::ServeOptions options_by_flags(const std::map<std::string, std::vector<std::string>>& flags,
                                      std::vector<std::string>* faults = nullptr) {
  const Arguments arguments{.flags = flags};
  FlagReader reader(arguments);
  config::ServeOptions options;
  for (const base::Fault& fault :
       apply_settings(read_server_source({.folder = "/"}, reader), options)) {
    if (faults != nullptr) faults->push_back(fault.field + " " + fault.what);
  }
  return options;
}

TEST(SlurmOfAServer, ReadsAllKeys) {
  const config::ServeOptions options = config::read_server_config(R"(
engine: slurm
slurm:
  rest: unix:///run/slurmrestd.sock
  rest_user: muster
  token_command: [/opt/token, --lifespan, "600"]
  callback: "head,10.0.0.1:7445"
  callback_bind: 10.0.0.1
  shared: yes
  node_folder: /scratch/muster
  programs: /opt/muster/libexec
  tasks_per_node: 2
  accounts: {vision: lab1, speech: lab_2}
  default_account: proj-%p
  job_accounts: [lab1, shared_lab]
  job_reservations: course,maint:1
  qos: normal
  options: [--exclude=n7, "-x n8", --mail-type=FAIL]
)");
  EXPECT_EQ(options.engine, "slurm");
  EXPECT_EQ(options.slurm_rest, "unix:///run/slurmrestd.sock");
  EXPECT_EQ(options.slurm_rest_user, "muster");
  EXPECT_EQ(options.slurm_token_command,
            (std::vector<std::string>{"/opt/token", "--lifespan", "600"}));
  EXPECT_EQ(options.slurm_callback,
            (config::CallbackAddress{.hosts = {"head", "10.0.0.1"}, .port = 7445}));
  EXPECT_EQ(options.slurm_callback_bind, "10.0.0.1");
  EXPECT_EQ(options.slurm_shared, config::NodeSharing::kYes);
  EXPECT_EQ(options.slurm_node_folder, "/scratch/muster");
  EXPECT_EQ(options.slurm_programs, "/opt/muster/libexec");
  EXPECT_EQ(options.slurm_tasks_per_node, 2);
  EXPECT_EQ(options.slurm_accounts,
            (std::map<std::string, std::string>{{"vision", "lab1"}, {"speech", "lab_2"}}));
  EXPECT_EQ(options.slurm_default_account, "proj-%p");
  EXPECT_EQ(options.slurm_job_accounts, (std::vector<std::string>{"lab1", "shared_lab"}));
  EXPECT_EQ(options.slurm_job_reservations, (std::vector<std::string>{"course", "maint:1"}));
  EXPECT_EQ(options.slurm_qos, "normal");
  EXPECT_EQ(options.slurm_options,
            (std::vector<std::string>{"--exclude=n7", "-x n8", "--mail-type=FAIL"}));
  EXPECT_TRUE(config::contradictions(options).empty());
}

TEST(SlurmOfAServer, IsSetByFlagsToo) {
  const config::ServeOptions options =
      options_by_flags({{"--engine", {"slurm"}},
                        {"--slurm-rest", {"http://[fd00::1]:6820"}},
                        {"--slurm-callback", {":7445"}},
                        {"--slurm-shared", {"no"}},
                        {"--slurm-accounts", {"vision=lab1", "speech=lab2"}},
                        {"--slurm-default-account", {"rest"}},
                        {"--slurm-job-accounts", {"lab1,lab2"}},
                        {"--slurm-job-reservations", {"course"}}});
  EXPECT_EQ(options.engine, "slurm");
  EXPECT_EQ(options.slurm_rest, "http://[fd00::1]:6820");
  EXPECT_EQ(options.slurm_callback, (config::CallbackAddress{.port = 7445}));
  EXPECT_EQ(options.slurm_shared, config::NodeSharing::kNo);
  EXPECT_EQ(options.slurm_accounts.at("speech"), "lab2");
  EXPECT_EQ(options.slurm_default_account, "rest");
  EXPECT_EQ(options.slurm_job_accounts, (std::vector<std::string>{"lab1", "lab2"}));
  EXPECT_EQ(options.slurm_job_reservations, std::vector<std::string>{"course"});
}

TEST(SlurmOfAServer, FindsSlurmrestdWithTheValueAuto) {
  const config::ServeOptions options =
      config::read_server_config("engine: slurm\nslurm: {rest: auto, rest_user: muster}\n");
  EXPECT_EQ(options.slurm_rest, "auto");
  EXPECT_TRUE(config::contradictions(options).empty());
  EXPECT_EQ(options_by_flags({{"--slurm-rest", {"auto"}}}).slurm_rest, "auto");

  std::vector<std::string> faults;
  EXPECT_EQ(options_by_flags({{"--slurm-rest", {"Auto"}}}, &faults).slurm_rest, "");
  EXPECT_EQ(faults, std::vector<std::string>{
                        "--slurm-rest 'Auto' is neither unix:///SOCKET nor "
                        "http[s]://HOST:PORT, as in unix:///run/slurmrestd/slurmrestd.socket, "
                        "nor auto"});
}

TEST(SlurmOfAServer, HasCallbackHostsAndAPort) {
  const auto read_as = [](const std::string& text) {
    return options_by_flags({{"--slurm-callback", {text}}}).slurm_callback;
  };
  EXPECT_EQ(read_as("head"), (config::CallbackAddress{.hosts = {"head"}}));
  EXPECT_EQ(read_as("head.example.org:1"),
            (config::CallbackAddress{.hosts = {"head.example.org"}, .port = 1}));
  EXPECT_EQ(read_as("[fd00::1]"), (config::CallbackAddress{.hosts = {"fd00::1"}}));
  EXPECT_EQ(read_as("a,[fd00::1]:65535"),
            (config::CallbackAddress{.hosts = {"a", "fd00::1"}, .port = 65535}));
  for (const char* text : {"head:", "head:0", "head:65536", "head:port", "a:1,b:2", "a b", ",a",
                           "-a", "a,,b", "", "a;b", "[fd00::g/1]"}) {
    std::vector<std::string> faults;
    EXPECT_EQ(options_by_flags({{"--slurm-callback", {text}}}, &faults).slurm_callback,
              config::CallbackAddress())
        << text;
    EXPECT_EQ(faults.size(), 1U) << text;
  }
}

TEST(SlurmOfAServer, ReportsEveryFaultAtOnceWithItsLine) {
  const std::string faults = config::server_config_faults(R"(
engine: slrm
slurm:
  rest: ftp://head
  rest_user: a b
  token_command: [token]
  callback: "a:1,b"
  callback_bind: head
  shared: sometimes
  node_folder: scratch
  programs: "/opt/my programs"
  tasks_per_node: 0
  accounts: {vision: "a b"}
  default_account: "%q"
  qos: "-q"
  options: [exclude=n7, --wrap=id, "-o out", "--mail-user=a\nb", "--comment x"]
  job_accounts: [lab1, "a b", -lab]
  job_reservations: "course,a;b"
  colour: red
)");
  for (const char* line :
       {"line 2: engine: 'slrm' is invalid: expected one of process, container, slurm, kubernetes; "
        "did you mean 'slurm'?",
        "line 4: slurm.rest: 'ftp://head' is neither unix:///SOCKET nor http[s]://HOST:PORT",
        "line 5: slurm.rest_user: 'a b' is not a name",
        "line 6: slurm.token_command: 'token' is not an absolute path",
        "line 7: slurm.callback: 'a:1' is not HOST or HOST:PORT, as in head:7445; the port follows "
        "the last host",
        "line 8: slurm.callback_bind: 'head' is not an address of this machine",
        "line 9: slurm.shared: 'sometimes' is neither auto, yes nor no",
        "line 10: slurm.node_folder: 'scratch' is not an absolute path on the nodes",
        "line 11: slurm.programs: '/opt/my programs' is not an absolute path on the nodes",
        "line 12: slurm.tasks_per_node: is 0",
        "line 13: slurm.accounts.vision: 'vision=a b' is not PROJECT=ACCOUNT",
        "line 14: slurm.default_account: '%q' is not the name of an account",
        "line 15: slurm.qos: '-q' is not a name",
        "line 16: slurm.options: 'exclude=n7' is not an option of sbatch",
        "line 16: slurm.options: '--wrap=id' is an option that Muster sets itself for each job",
        "line 16: slurm.options: '-o out' is an option that Muster sets itself for each job",
        "line 16: slurm.options: '--mail-user=a\nb' is not an option of sbatch",
        "line 16: slurm.options: '--comment x' is an option that Muster sets itself for each job",
        "line 17: slurm.job_accounts: 'a b' is not a name; use letters, digits and _-.+:@",
        "line 17: slurm.job_accounts: '-lab' is not a name",
        "line 18: slurm.job_reservations: 'a;b' is not a name",
        "line 19: slurm.colour: unknown key"}) {
    EXPECT_NE(faults.find(line), std::string::npos) << line << "\n" << faults;
  }
}

TEST(SlurmOfAServer, RefusesAPasswordInAUrl) {
  const std::string faults =
      config::server_config_faults("slurm: {rest: 'http://ada:geheim@head:6820'}\n");
  EXPECT_NE(faults.find("contains a user or a password"), std::string::npos) << faults;
  EXPECT_EQ(faults.find("geheim"), std::string::npos);
}

TEST(SlurmOfAServer, RefusesItsKeysWithAnotherEngine) {
  std::vector<base::Fault> faults = config::contradictions(
      config::read_server_config("slurm: {qos: high, shared: no, accounts: {a: b}}\n"));
  ASSERT_EQ(faults.size(), 3U);
  EXPECT_EQ(faults[0].field, "slurm.shared");
  EXPECT_EQ(faults[0].what, "is for Slurm: engine: slurm (--engine slurm)");
  EXPECT_EQ(faults[1].field, "slurm.accounts");
  EXPECT_EQ(faults[2].field, "slurm.qos");

  faults = config::contradictions(config::read_server_config(
      "engine: slurm\ncontainer_hosts: {a: ssh://a}\nslurm: {rest_user: ada}\n"));
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0].what, "is for containers: engine: container (--engine container)");
  EXPECT_EQ(faults[1].field, "slurm.rest_user");
  EXPECT_EQ(faults[1].what, "is for slurmrestd: slurm.rest");
}

}  // namespace

}  // namespace muster::cli::server
