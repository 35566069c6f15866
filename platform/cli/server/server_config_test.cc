#include "config/server_config.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/test_folder.h"
#include "cli/server/server.h"
#include "config/test_server_config.h"

namespace muster::cli::server {

namespace {

/// The options of a command line with these flags, in this environment, over the file `text`.
config::ServeOptions options_over_file(
    const std::vector<std::pair<std::string, std::string>>& flags, Environment environment,
    const config::ServeOptions& file) {
  Arguments arguments;
  for (const auto& [flag, value] : flags) arguments.flags[flag] = {value};
  FlagReader reader(arguments);
  const Caller caller{.folder = "/home/ada", .environment = std::move(environment)};
  config::ServeOptions options = file;
  EXPECT_TRUE(apply_settings(read_server_source(caller, reader), options).empty());
  return options;
}

TEST(ServerConfig, ReadsEveryTypeOfValue) {
  const config::ServeOptions options = config::read_server_config(R"(
state_dir: /var/lib/muster
jobs_dir: ../../srv/jobs
store: postgres://muster@db/muster
listen: 0.0.0.0:7443
tls: {certificate: tls/cert.pem, key: tls/key.pem, names: [muster, 10.0.0.7]}
session_lifetime: 8h
limits: {request_rate: 12.5, body_bytes: 1Mi, connections: 50, request_timeout: 10s}
log_format: json
log_requests: true
gpus: 4:A100:80G
topology: {rack: r1, block: b1}
scheduler: {packing: spread, stale_grace: never, decay: 0.5}
)");

  EXPECT_EQ(options.state_folder, "/var/lib/muster");
  EXPECT_EQ(options.jobs_folder, "/srv/jobs");
  EXPECT_EQ(options.store, "postgres://muster@db/muster");
  EXPECT_EQ(options.listen, "0.0.0.0:7443");
  EXPECT_EQ(options.tls_certificate, "/etc/muster/tls/cert.pem");
  EXPECT_EQ(options.tls_names, (std::vector<std::string>{"muster", "10.0.0.7"}));
  EXPECT_EQ(options.session_lifetime, std::chrono::hours(8));
  EXPECT_EQ(options.request_rate, 12.5);
  EXPECT_EQ(options.body_bytes, 1 << 20);
  EXPECT_EQ(options.connections, 50);
  EXPECT_EQ(options.request_timeout, std::chrono::seconds(10));
  EXPECT_EQ(options.log_format, base::LogFormat::kJson);
  EXPECT_TRUE(options.log_requests);
  EXPECT_EQ(options.declared_gpus, "4:A100:80G");
  EXPECT_EQ(options.topology,
            (std::map<std::string, std::string>{{"block", "b1"}, {"rack", "r1"}}));
  EXPECT_EQ(options.packing, config::Packing::kSpread);
  EXPECT_EQ(options.stale_grace, std::nullopt);
  EXPECT_EQ(options.decay, 0.5);
}

TEST(ServerConfig, ThatWasNamedAndIsMissingIsInvalid) {
  const base::TestFolder folder;
  config::ServerSource source{.file = folder / "nosuch.yaml"};
  EXPECT_TRUE(config::read_server_options(source)) << "the usual file need not exist";
  source.file_was_named = true;
  const auto options = config::read_server_options(source);
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().code, base::ErrorCode::kInvalid) << "exit code 2, as with submit -f";
  EXPECT_NE(options.error().what.find("nosuch.yaml"), std::string::npos) << options.error().what;
}

TEST(ServerConfig, HasRetentionLimitsOnlyIfTheyAreSet) {
  const config::ServeOptions all =
      config::read_server_config("keep_jobs_for: forever\nkeep_jobs: all\nkeep_bytes: all\n");
  EXPECT_EQ(all.keep_jobs_for, std::nullopt);
  EXPECT_EQ(all.keep_jobs, std::nullopt);
  EXPECT_EQ(all.keep_bytes, std::nullopt);

  const config::ServeOptions some =
      config::read_server_config("keep_jobs_for: 30d\nkeep_jobs: 0\nkeep_bytes: 10Gi\n");
  EXPECT_EQ(some.keep_jobs_for, std::chrono::days(30));
  EXPECT_EQ(some.keep_jobs, 0);
  EXPECT_EQ(some.keep_bytes, int64_t{10} << 30);

  const std::string faults =
      config::server_config_faults("keep_jobs: -1\nkeep_bytes: 12\nkeep_jobs_for: long\n");
  for (const char* line : {"line 1: keep_jobs", "line 2: keep_bytes", "line 3: keep_jobs_for"}) {
    EXPECT_NE(faults.find(line), std::string::npos) << faults;
  }
}

TEST(ServerConfig, ReadsContainerHostsFromTheFileAndFromFlags) {
  const config::ServeOptions file = config::read_server_config(R"(
engine: container
container_hosts: {gpu-1: ssh://ada@gpu-1, gpu-2: "tcp://gpu-2:2376"}
host_addresses: {gpu-2: 10.1.0.2}
host_gpus: {gpu-1: "8:A100:80G"}
docker_cert_path: docker
)");
  EXPECT_EQ(file.engine, "container");
  EXPECT_EQ(file.container_hosts,
            (std::map<std::string, std::string>{{"gpu-1", "ssh://ada@gpu-1"},
                                                {"gpu-2", "tcp://gpu-2:2376"}}));
  EXPECT_EQ(file.host_addresses.at("gpu-2"), "10.1.0.2");
  EXPECT_EQ(file.host_gpus.at("gpu-1"), "8:A100:80G");
  EXPECT_EQ(file.docker_cert_path, "/etc/muster/docker");
  EXPECT_TRUE(config::contradictions(file).empty());

  const Arguments arguments{
      .flags = {{"--engine", {"container"}},
                {"--host", {"a=unix:///a.sock", "b=ssh://b/run/docker.sock"}}}};
  FlagReader reader(arguments);
  config::ServeOptions flags;
  EXPECT_TRUE(apply_settings(read_server_source({.folder = "/"}, reader), flags).empty());
  EXPECT_EQ(flags.container_hosts, (std::map<std::string, std::string>{
                                       {"a", "unix:///a.sock"}, {"b", "ssh://b/run/docker.sock"}}));
  EXPECT_EQ(options_over_file({}, {{"MUSTER_ENGINE", "container"}}, {}).engine, "container");
}

TEST(ServerConfig, RefusesInvalidHosts) {
  const std::pair<std::string, std::string> cases[] = {
      {"engine: containers", "did you mean 'container'?"},
      {"container_hosts: {-a: ssh://b}", "is not NAME=URL"},
      {"container_hosts: {a: ''}", "is not NAME=URL"},
      {"container_hosts: ssh://gpu-1", "is not NAME=URL"},
      {"container_hosts: {a: ssh://b, a: ssh://c}", "is given twice"},
      {"host_gpus: [8]", "must be a map"},
  };
  for (const auto& [text, fault] : cases) {
    EXPECT_NE(config::server_config_faults(text).find(fault), std::string::npos)
        << text << "\n"
        << config::server_config_faults(text);
  }
}

TEST(ServerConfig, RefusesValuesThatOnlyTheirUserWouldRefuse) {
  const std::pair<std::string, std::string> cases[] = {
      {"gpus: 4:A100:80Q", "line 1: gpus: '80Q' is not a size such as 16G or 80G"},
      {"gpus: 65", "line 1: gpus: '65' is not a number of GPUs from 0 to 64"},
      {"tasks: {internet_range: 10.213.0.0/33}",
       "line 1: tasks.internet_range: '10.213.0.0/33' is not a network such as 10.0.0.0/16"},
      {"tasks: {internet_range: 10.213.0.0}", "'10.213.0.0' is not a network"},
      {"tasks: {internet_refused: [10.0.0.0/8, x]}",
       "tasks.internet_refused: 'x' is not a network"},
      {"tasks: {nameservers: [foo]}", "tasks.nameservers: 'foo' is not an address"},
      {"listen: 0.0.0.0:7443:1", "listen: '0.0.0.0:7443:1' is not HOST:PORT"},
      {"node_pool: ' a'", "node_pool: ' a' is not the name of a node pool"},
      {"topology: {block: ' b'}", "'block= b' is not LEVEL=DOMAIN"},
      {"notify: {command: /bin/echo hi}",
       "'/bin/echo hi' is one text; give a list, as in [/bin/echo, hi]"},
  };
  for (const auto& [text, fault] : cases) {
    EXPECT_NE(config::server_config_faults(text).find(fault), std::string::npos)
        << text << "\n"
        << config::server_config_faults(text);
  }
  EXPECT_EQ(config::server_config_faults("listen: '[::]:7443'\n"
                                         "gpus: 1:NVIDIA H100 80GB HBM3:80G\n"
                                         "notify: {command: [/opt/a hook, '']}\n"
                                         "tasks: {internet_refused: [10.0.0.1, 10.0.0.0/8]}"),
            "");
}

TEST(ServerConfig, RefusesARangeWithoutAnAddressForAJobWhereTheRangeIsUsed) {
  config::ServeOptions options =
      config::read_server_config("listen: a:1\ntasks: {internet_range: 10.213.240.0/31}\n");
  const std::vector<base::Fault> faults = config::contradictions(options);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].field, "tasks.internet_range");
  EXPECT_EQ(faults[0].what,
            "'10.213.240.0/31' has no address for a job: give a network of /30 or larger");

  config::ServeOptions shared = options;
  shared.task_network = config::TaskNetwork::kShared;
  EXPECT_TRUE(config::contradictions(shared).empty());
  config::ServeOptions slurm = options;
  slurm.engine = "slurm";
  EXPECT_TRUE(config::contradictions(slurm).empty());
  options.task_internet_range = "10.213.240.0/30";
  EXPECT_TRUE(config::contradictions(options).empty()) << "one job after the other";
}

TEST(ServerConfig, NamesConflictingTablesOfHosts) {
  config::ServeOptions options{.container_hosts = {{"gpu-1", "ssh://gpu-1"}},
                               .host_addresses = {{"gpu-2", "10.0.0.2"}},
                               .host_gpus = {{"gpu-1", "8"}}};
  std::vector<base::Fault> faults = config::contradictions(options);
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0].field, "container_hosts");
  EXPECT_EQ(faults[1].field, "host_addresses.gpu-2");

  options.engine = "container";
  options.container_hosts.emplace("gpu-2", "ssh://gpu-2");
  EXPECT_TRUE(config::contradictions(options).empty());
}

TEST(ServerConfig, IgnoresAnEmptyFileAndAGroupOfComments) {
  EXPECT_TRUE(config::changes_between(config::read_server_config(""), config::ServeOptions{})
                  .need_restart.empty());
  EXPECT_TRUE(config::changes_between(config::read_server_config("limits:\n  # request_rate: 5\n"),
                                      config::ServeOptions{})
                  .taken_over.empty());
}

TEST(ServerConfig, ReportsEveryFaultAtOnceWithItsLine) {
  const std::string text = config::server_config_faults(
      "listn: 0.0.0.0:7443\n"
      "limits:\n"
      "  request_rat: 5\n"
      "  connections: many\n"
      "log_format: xml\n"
      "listen: nowhere\n"
      "listen: 0.0.0.0:1\n");

  EXPECT_NE(text.find("'muster.yaml' has 6 faults"), std::string::npos) << text;
  for (const char* fault :
       {"line 1: listn: unknown key; did you mean 'listen'?",
        "line 3: limits.request_rat: unknown key; did you mean 'request_rate'?",
        "line 4: limits.connections: 'many' is not a whole number",
        "line 5: log_format: 'xml' is invalid: expected one of text, json",
        "line 6: listen: 'nowhere' is not HOST:PORT", "line 7: listen: is given twice"}) {
    EXPECT_NE(text.find(fault), std::string::npos) << fault << "\nin\n" << text;
  }
}

TEST(ServerConfig, RefusesInvalidValues) {
  const std::pair<std::string, std::string> cases[] = {
      {"- listen", "must be a map, not a list"},
      {"limits: 5", "must be a map, not a single value"},
      {"listen:", "must be a single value, not nothing"},
      {"listen: 0.0.0.0:70000", "is not HOST:PORT"},
      {"store: mysql://db", "is not a supported database"},
      {"limits: {request_rate: 0}", "give more than 0"},
      {"limits: {body_bytes: 10}", "is not between 1Ki and 1Gi"},
      {"limits: {request_timeout: 5ms}", "is less than a second"},
      {"session_lifetime: 0s", "is 0; give a longer time"},
      {"log_requests: yes", "'yes' is neither true nor false"},
      {"node_pool: ''", "is empty"},
      {"topology: {rack: ''}", "is not LEVEL=DOMAIN"},
      {"scheduler: {packing: sprad}", "did you mean 'spread'?"},
      {"tasks: {subids: 5}", "'5' is not FIRST:COUNT"},
      {"tasks: {subids: 'a:b'}", "'a:b' is not FIRST:COUNT"},
      {"tasks: {subids: ''}", "is not FIRST:COUNT"},
      {"tasks: {subids: '1000:200000'}", "begins below 65536"},
      {"tasks: {subids: '1900000000:65536'}", "fewer than 131072 ids"},
      {"tasks: {subids: '2147483000:200000'}", "ends beyond 2147483648"},
      {"tasks: {accounts: mine}", "mine"},
      {"listen: a:1\n---\nlisten: b:1\n", "a second document begins"},
      {"a: &a [*a]", "too much"},
  };
  for (const auto& [text, fault] : cases) {
    EXPECT_NE(config::server_config_faults(text).find(fault), std::string::npos)
        << text << "\n"
        << config::server_config_faults(text);
  }
}

TEST(ServerConfig, ReadsTheIdsOfUsers) {
  const config::ServeOptions options =
      config::read_server_config("tasks: {subids: '1900000000:131072', accounts: own}");

  EXPECT_EQ(options.task_subids, (config::IdSpan{.first = 1'900'000'000, .count = 131'072}));
  EXPECT_EQ(options.task_accounts, config::TaskAccounts::kOwn);
}

TEST(ServerConfig, SurvivesAYamlBomb) {
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char letter = 'b'; letter < 'k'; ++letter) {
    const std::string before = std::string("*") + static_cast<char>(letter - 1);
    bomb += std::string(1, letter) + ": &" + letter + " [" + before;
    for (int i = 0; i < 9; ++i) bomb += ", " + before;
    bomb += "]\n";
  }
  EXPECT_NE(config::server_config_faults(bomb).find("too much"), std::string::npos);
}

TEST(ServerConfig, IgnoresTheDefaultFileForTheServersLocation) {
  EXPECT_NE(config::server_config_faults("state_dir: /srv", false).find("MUSTER_STATE_DIR"),
            std::string::npos);
  EXPECT_EQ(config::server_config_faults("listen: 0.0.0.0:1", false), "");
}

TEST(ServerConfig, PrefersFlagsToTheEnvironmentAndTheEnvironmentToTheFile) {
  const config::ServeOptions file =
      config::read_server_config("gpus: '1'\nstore: /file.db\nlisten: a:1\n");

  const config::ServeOptions options = options_over_file(
      {{"--declare-gpus", "3"}, {"--store", "here.db"}}, {{"MUSTER_DECLARE_GPUS", "2"}}, file);
  EXPECT_EQ(options.declared_gpus, "3");
  EXPECT_EQ(options.store, "/home/ada/here.db");
  EXPECT_EQ(options.listen, "a:1");
  EXPECT_EQ(options_over_file({}, {{"MUSTER_STORE", "postgres://a:b@c/d"}}, file).store,
            "postgres://a:b@c/d");
}

TEST(ServerConfig, TakesNoPasswordFromTheCommandLine) {
  for (const char* url : {"postgres://ada:secret@db/muster", "postgres://db/m?password=secret",
                          "postgres://db/m?sslmode=require&password=secret"}) {
    config::ServeOptions options;
    const auto faults = apply_settings({.settings = {{"store", "--store", url}}}, options);
    ASSERT_EQ(faults.size(), 1U) << url;
    EXPECT_NE(faults[0].what.find("other users of this machine could read"), std::string::npos);
    EXPECT_EQ(faults[0].what.find("secret"), std::string::npos);
  }
}

TEST(ServerConfig, ReportsConflictingKeys) {
  config::ServeOptions options;
  options.tls_certificate = "/cert.pem";
  options.store_password_file = "/password";
  const auto faults = config::contradictions(options);
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0].what, "requires tls.key");
  EXPECT_EQ(faults[1].field, "store_password_file");
}

TEST(ServerConfig, AppliesTheReloadableKeysAtAReload) {
  const config::ServeOptions before =
      config::read_server_config("listen: a:1\nlimits: {request_rate: 5}\n");
  const config::ServeOptions after =
      config::read_server_config("listen: a:2\nlimits: {request_rate: 6}\nlog_format: json\n");

  const config::ConfigChanges changes = config::changes_between(before, after);
  EXPECT_EQ(changes.taken_over, (std::vector<std::string>{"limits.request_rate", "log_format"}));
  EXPECT_EQ(changes.need_restart, std::vector<std::string>{"listen"});
  const config::ServeOptions now = config::with_reloaded(before, after);
  EXPECT_EQ(now.listen, "a:1");
  EXPECT_EQ(now.request_rate, 6);
  EXPECT_EQ(now.log_format, base::LogFormat::kJson);
}

TEST(ServerConfig, HasChangedWhenItsFileIsWrittenOrRemoved) {
  const base::TestFolder folder;
  const config::ServerSource source{.file = folder / "server.yaml"};
  const auto before = config::read_server_options(source);
  ASSERT_TRUE(before);
  EXPECT_FALSE(config::has_changed(before->config));

  ASSERT_TRUE(base::write_file(source.file, "limits: {request_rate: 5}\n"));
  EXPECT_TRUE(config::has_changed(before->config));

  const auto after = config::read_server_options(source);
  ASSERT_TRUE(after);
  EXPECT_FALSE(config::has_changed(after->config));
  EXPECT_FALSE(config::has_changed(config::with_reloaded(*before, *after).config));
  std::filesystem::remove(source.file);
  EXPECT_TRUE(config::has_changed(after->config));
}

TEST(ServerConfig, CountsAsReadAfterAReloadEvenIfAKeyNeedsARestart) {
  const config::ServeOptions before = config::read_server_config("listen: a:1\n");
  config::ServeOptions after = config::read_server_config("listen: a:2\n");
  after.config = {.file = "after"};

  const config::ServeOptions now = config::with_reloaded(before, after);

  EXPECT_EQ(now.config, after.config);
  EXPECT_EQ(config::changes_between(now, after).need_restart, std::vector<std::string>{"listen"});
  EXPECT_TRUE(config::changes_between(now, before).need_restart.empty()) << "changed back";
}

TEST(ServerConfig, HasTablesOfMachinesAndOfImageReplacements) {
  const config::ServeOptions options = config::read_server_config(R"(
machine_types:
  p3.2xlarge: {gpus: 1, gpu_model: V100, cpus: 8, memory: 61G}
  C3: {}
images:
  registry.example.org/train:
    command: run.sh --all
    folder: ../opt/train
    environment: {DATA: /data, SEED: 3}
  other: {command: [./other]}
)");

  const job::MachineType& type = options.machine_types.at("p3.2xlarge");
  EXPECT_EQ(type.resources.gpus, 1);
  EXPECT_EQ(type.gpu_model, "V100");
  EXPECT_EQ(type.resources.cpu_milli, 8000);
  EXPECT_EQ(type.resources.memory_bytes, int64_t{61} << 30);
  EXPECT_EQ(options.machine_types.at("C3"), job::MachineType{});
  const job::ImageStandIn& image = options.images.at("registry.example.org/train");
  EXPECT_EQ(image.command, (std::vector<std::string>{"sh", "-c", "run.sh --all"}));
  EXPECT_EQ(image.folder, "/etc/opt/train");
  EXPECT_EQ(image.environment.at("SEED"), "3");
  EXPECT_EQ(options.images.at("other").command, std::vector<std::string>{"./other"});
}

TEST(ServerConfig, ReportsEveryFaultOfItsTables) {
  const std::string faults = config::server_config_faults(R"(
machine_types:
  V100: {gpus: many, ram: 3}
  V100: {}
images: [a]
)");

  for (const char* words :
       {"line 3: machine_types.V100.gpus", "line 3: machine_types.V100.ram: unknown key",
        "line 4: machine_types.V100: is given twice", "line 5: images: must be a map"}) {
    EXPECT_NE(faults.find(words), std::string::npos) << faults;
  }
}

}  // namespace

}  // namespace muster::cli::server
