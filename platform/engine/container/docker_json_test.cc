#include "engine/container/docker_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/bytes.h"

namespace muster::engine {
namespace {

using base::ErrorCode;
using nlohmann::json;

DockerInfo docker() {
  return {.api_version = "1.41", .version = {}, .os = {}, .architecture = {}, .host_name = {}};
}
DockerInfo podman() {
  DockerInfo info = docker();
  info.is_podman = true;
  return info;
}

ContainerConfig config() {
  return {.name = "muster-j1-0-worker-0", .image = "team/image:1"};
}

json created(const ContainerConfig& settings, const DockerInfo& engine = docker()) {
  const auto body = create_body(settings, engine);
  EXPECT_TRUE(body) << body.error().to_string();
  return body ? json::parse(*body) : json();
}

json host_of(const ContainerConfig& settings, const DockerInfo& engine = docker()) {
  return created(settings, engine).at("HostConfig");
}

json libpod(const ContainerConfig& settings, const DockerInfo& engine = podman()) {
  const auto body = libpod_create_body(settings, engine);
  EXPECT_TRUE(body) << body.error().to_string();
  return body ? json::parse(*body) : json();
}

// --- requests ---

TEST(CreateBody, IsStrictByDefault) {
  EXPECT_EQ(host_of(config()), json::parse(R"({"LogConfig":{"Type":"none","Config":{}},
      "SecurityOpt":["no-new-privileges"],"CapDrop":["ALL"],"PidsLimit":32768})"));
}

TEST(CreateBody, HidesFilesInPodmanOnly) {
  ContainerConfig settings = config();
  settings.hidden = {"/proc/kallsyms", "/proc/modules"};
  EXPECT_EQ(host_of(settings).at("SecurityOpt"), json({"no-new-privileges"}));
  EXPECT_EQ(host_of(settings, podman()).at("SecurityOpt"),
            json({"no-new-privileges", "mask=/proc/kallsyms:/proc/modules"}));
  EXPECT_EQ(libpod(settings).at("mask"), json({"/proc/kallsyms", "/proc/modules"}));
}

TEST(CreateBody, ContainsTheProgram) {
  ContainerConfig settings = config();
  settings.hostname = "worker-0";
  settings.user = "1000:100";
  settings.folder = "/work";
  settings.entrypoint = {"/muster/bin/muster-shim", "--container"};
  settings.command = {"a b", ""};
  settings.environment = {"A=\"1\"", "EMPTY="};
  settings.labels = {{"org.muster.job", "j1"}};
  settings.open_input = true;

  const json body = created(settings);

  EXPECT_EQ(body.at("Image"), "team/image:1");
  EXPECT_EQ(body.at("Hostname"), "worker-0");
  EXPECT_EQ(body.at("User"), "1000:100");
  EXPECT_EQ(body.at("WorkingDir"), "/work");
  EXPECT_EQ(body.at("Entrypoint"), json({"/muster/bin/muster-shim", "--container"}));
  EXPECT_EQ(body.at("Cmd"), json({"a b", ""}));
  EXPECT_EQ(body.at("Env"), json({"A=\"1\"", "EMPTY="}));
  EXPECT_EQ(body.at("Labels"), json::parse(R"({"org.muster.job":"j1"})"));
  EXPECT_EQ(body.at("OpenStdin"), true);
  EXPECT_EQ(body.at("StdinOnce"), true);
  EXPECT_EQ(body.at("Tty"), false);
  EXPECT_EQ(body.at("Healthcheck").at("Test"), json({"NONE"}));
  EXPECT_FALSE(created(settings, podman()).contains("Healthcheck"));
}

TEST(CreateBody, HidesGpusFromNvidiasRuntimeOnBothEngines) {
  ContainerConfig settings = config();
  settings.environment = {kNoGpus};

  EXPECT_EQ(created(settings).at("Env"), json({"NVIDIA_VISIBLE_DEVICES=void"}));
  EXPECT_EQ(libpod(settings).at("env"), json::parse(R"({"NVIDIA_VISIBLE_DEVICES":"void"})"));
}

TEST(CreateBody, LeavesTheRestToTheImage) {
  const json body = created(config());
  for (const char* key : {"Hostname", "User", "WorkingDir", "Entrypoint", "Cmd", "Env", "Volumes",
                          "NetworkingConfig"}) {
    EXPECT_FALSE(body.contains(key)) << key;
  }
}

TEST(CreateBody, WritesEachKindOfMount) {
  ContainerConfig settings = config();
  settings.mounts = {
      {.source = "", .target = "/muster"},
      {.source = "data", .target = "/data", .read_only = true},
      {.kind = DockerMount::Kind::kBind, .source = "/srv", .target = "/srv"},
      {.kind = DockerMount::Kind::kTmpfs, .source = "", .target = "/tmp"},
      {.kind = DockerMount::Kind::kTmpfs, .source = "", .target = "/s", .tmpfs_bytes = 4096}};

  const json body = created(settings);

  EXPECT_EQ(body.at("Volumes"), json::parse(R"({"/muster":{}})"));
  const json& host = body.at("HostConfig");
  EXPECT_EQ(host.at("Mounts"), json::parse(R"([
      {"Type":"volume","Source":"data","Target":"/data","ReadOnly":true},
      {"Type":"bind","Source":"/srv","Target":"/srv","ReadOnly":false}])"));
  EXPECT_EQ(host.at("Tmpfs"), json::parse(R"({"/tmp":"rw,exec,nosuid,nodev,mode=1777",
      "/s":"rw,exec,nosuid,nodev,mode=1777,size=4096"})"));
}

TEST(CreateBody, WritesTheLimitsAndForbidsSwap) {
  ContainerConfig settings = config();
  settings.cpu_milli = 1500;
  settings.memory_bytes = int64_t{3} << 30U;
  settings.shm_bytes = 1 << 20;
  DockerInfo engine = docker();

  EXPECT_FALSE(host_of(settings, engine).contains("MemorySwap"));
  engine.limits_swap = true;
  const json host = host_of(settings, engine);

  EXPECT_EQ(host.at("NanoCpus"), 1'500'000'000);
  EXPECT_EQ(host.at("Memory"), 3'221'225'472);
  EXPECT_EQ(host.at("MemorySwap"), 3'221'225'472);
  EXPECT_EQ(host.at("ShmSize"), 1 << 20);
  EXPECT_EQ(host.at("PidsLimit"), 32'768);
  settings.processes = 40;
  EXPECT_EQ(host_of(settings, engine).at("PidsLimit"), 40);
}

TEST(CreateBody, WritesAliasesForItsNetwork) {
  ContainerConfig settings = config();
  settings.network = "muster-j1-0";
  settings.aliases = {"worker-0"};
  settings.extra_hosts = {{"ps-0", "10.0.0.7"}, {"six", "fe80::1"}};

  json body = created(settings);
  EXPECT_EQ(body.at("HostConfig").at("NetworkMode"), "muster-j1-0");
  EXPECT_EQ(body.at("HostConfig").at("ExtraHosts"), json({"ps-0:10.0.0.7", "six:fe80::1"}));
  EXPECT_EQ(body.at("NetworkingConfig"),
            json::parse(R"({"EndpointsConfig":{"muster-j1-0":{"Aliases":["worker-0"]}}})"));

  settings.network = "host";
  body = created(settings);
  EXPECT_EQ(body.at("HostConfig").at("NetworkMode"), "host");
  EXPECT_FALSE(body.contains("NetworkingConfig")) << "the host's network has no aliases";
}

TEST(CreateBody, RelaxesRestrictionsOnRequest) {
  ContainerConfig settings = config();
  settings.no_new_privileges = false;
  settings.drop_all_capabilities = false;
  settings.capabilities = {"SYS_PTRACE"};
  const json open = host_of(settings);
  EXPECT_FALSE(open.contains("SecurityOpt"));
  EXPECT_FALSE(open.contains("CapDrop"));
  EXPECT_EQ(open.at("CapAdd"), json({"SYS_PTRACE"}));
  EXPECT_FALSE(open.contains("ReadonlyRootfs"));

  settings.read_only_root = true;
  EXPECT_EQ(host_of(settings).at("ReadonlyRootfs"), true);
}

TEST(CreateBody, RequestsGpusInTheFormOfTheEngine) {
  ContainerConfig settings = config();
  settings.gpus = {"0", "GPU-8f3"};
  DockerInfo engine = docker();
  const json by_driver =
      json::parse(R"([{"Driver":"","DeviceIDs":["0","GPU-8f3"],"Capabilities":[["gpu"]]}])");
  EXPECT_EQ(host_of(settings, engine).at("DeviceRequests"), by_driver);

  engine.has_cdi = true;
  EXPECT_EQ(host_of(settings, engine).at("DeviceRequests"), json::parse(R"([{"Driver":"cdi",
      "DeviceIDs":["nvidia.com/gpu=0","nvidia.com/gpu=GPU-8f3"]}])"));

  engine.has_nvidia_runtime = true;
  EXPECT_EQ(host_of(settings, engine).at("DeviceRequests"), by_driver);
}

TEST(CreateBody, NamesTextThatIsNotUtf8) {
  ContainerConfig settings = config();
  settings.environment = {"GOOD=1", "BAD=\xff", "WORSE=\xc3"};

  for (const auto& body :
       {create_body(settings, docker()), libpod_create_body(settings, podman())}) {
    ASSERT_FALSE(body);
    EXPECT_EQ(body.error().code, ErrorCode::kInvalid);
    ASSERT_EQ(body.error().faults.size(), 2U);
    EXPECT_EQ(body.error().faults[0].field, "BAD");
    EXPECT_EQ(body.error().faults[1].field, "WORSE");
  }
  settings.environment.clear();
  settings.command = {"\xff"};
  EXPECT_FALSE(create_body(settings, docker()));
}

TEST(LibpodCreateBody, WritesTheSameForPodman) {
  ContainerConfig settings = config();
  settings.hostname = "worker-0";
  settings.user = "1000";
  settings.folder = "/work";
  settings.entrypoint = {"/muster/bin/muster-shim"};
  settings.command = {"x"};
  settings.environment = {"A=b=c", "EMPTY=", "BARE"};
  settings.labels = {{"l", "1"}};
  settings.mounts = {
      {.source = "", .target = "/muster"},
      {.source = "data", .target = "/data", .read_only = true},
      {.kind = DockerMount::Kind::kBind, .source = "/srv", .target = "/in", .read_only = true},
      {.kind = DockerMount::Kind::kTmpfs, .source = "", .target = "/tmp", .tmpfs_bytes = 5}};
  settings.network = "net";
  settings.aliases = {"worker-0"};
  settings.extra_hosts = {{"ps-0", "10.0.0.7"}};
  settings.cpu_milli = 2500;
  settings.memory_bytes = 100;
  settings.shm_bytes = 7;
  settings.gpus = {"0", "vendor.com/device=all"};
  settings.read_only_root = true;
  settings.capabilities = {"CHOWN"};
  settings.open_input = true;
  DockerInfo engine = podman();
  engine.limits_swap = true;

  EXPECT_EQ(libpod(settings, engine), json::parse(R"({
      "name":"muster-j1-0-worker-0","image":"team/image:1","hostname":"worker-0","user":"1000",
      "work_dir":"/work","entrypoint":["/muster/bin/muster-shim"],"command":["x"],
      "env":{"A":"b=c","EMPTY":"","BARE":""},"labels":{"l":"1"},"stdin":true,
      "log_configuration":{"driver":"none"},
      "mounts":[
        {"type":"bind","source":"/srv","destination":"/in","options":["rbind","ro"]},
        {"type":"tmpfs","source":"tmpfs","destination":"/tmp",
         "options":["rw","exec","nosuid","nodev","mode=1777","size=5"]}],
      "volumes":[{"Dest":"/muster","Options":["rw"]},
                 {"Name":"data","Dest":"/data","Options":["ro"]}],
      "netns":{"nsmode":"bridge"},"networks":{"net":{"aliases":["worker-0"]}},
      "hostadd":["ps-0:10.0.0.7"],
      "resource_limits":{"pids":{"limit":32768},
                         "cpu":{"period":100000,"quota":250000},
                         "memory":{"limit":100,"swap":100}},
      "shm_size":7,
      "devices":[{"path":"nvidia.com/gpu=0"},{"path":"vendor.com/device=all"}],
      "read_only_filesystem":true,"no_new_privileges":true,"cap_drop":["ALL"],
      "cap_add":["CHOWN"]})"));
}

TEST(LibpodCreateBody, HasNoAliasesOnTheHostsNetwork) {
  ContainerConfig settings = config();
  settings.network = "host";
  settings.aliases = {"worker-0"};
  const json body = libpod(settings);
  EXPECT_EQ(body.at("netns"), json::parse(R"({"nsmode":"host"})"));
  EXPECT_FALSE(body.contains("networks"));
}

TEST(ExecBody, ContainsTheCommand) {
  const auto body = exec_body({.argv = {"a", "b c"},
                               .environment = {"A=1"},
                               .user = "ann",
                               .folder = "/work",
                               .terminal = true,
                               .input = false});
  ASSERT_TRUE(body);
  EXPECT_EQ(json::parse(*body), json::parse(R"({"Cmd":["a","b c"],"Env":["A=1"],"User":"ann",
      "WorkingDir":"/work","Tty":true,"AttachStdin":false,"AttachStdout":true,
      "AttachStderr":true})"));
  EXPECT_EQ(json::parse(exec_start_body(true)), json::parse(R"({"Detach":false,"Tty":true})"));
}

TEST(Filters, ContainLabelsAndTypes) {
  EXPECT_EQ(filters({}), "{}");
  EXPECT_EQ(filters({"a=b", "c"}, {"container"}), R"({"label":["a=b","c"],"type":["container"]})");
}

TEST(RegistryAuth, IsBase64ForUrls) {
  const std::string header =
      registry_auth({.server = "host:5000", .username = "ann", .password = "p>?~ss"});
  EXPECT_EQ(header.find_first_of("+/"), std::string::npos);
  EXPECT_EQ(header, base::to_base64_for_urls(
                        R"({"password":"p>?~ss","serveraddress":"host:5000","username":"ann"})"));
}

// --- answers ---

TEST(ReadInfo, ReadsTheFactsOfTheHost) {
  DockerInfo info = docker();
  ASSERT_TRUE(read_info(R"({"Name":"node-1","NCPU":64,"MemTotal":540000000000,"OSType":"linux",
      "Architecture":"x86_64","ServerVersion":"25.0.3","SwapLimit":true,
      "CDISpecDirs":["/etc/cdi"],"Runtimes":{"runc":{},"nvidia":{"path":"x"}}})",
                        info));
  EXPECT_EQ(info.host_name, "node-1");
  EXPECT_EQ(info.cpus, 64);
  EXPECT_EQ(info.memory_bytes, 540'000'000'000);
  EXPECT_EQ(info.architecture, "amd64");
  EXPECT_EQ(info.version, "25.0.3");
  EXPECT_TRUE(info.has_nvidia_runtime);
  EXPECT_TRUE(info.has_cdi);
  EXPECT_TRUE(info.limits_swap);
  EXPECT_EQ(info.api_version, "1.41");

  DockerInfo bare = docker();
  ASSERT_TRUE(read_info(R"({"Runtimes":null,"CDISpecDirs":null,"Name":null})", bare));
  EXPECT_EQ(bare.cpus, 0);
  EXPECT_FALSE(bare.has_nvidia_runtime);
}

TEST(ReadImage, TreatsMissingMembersAsEmpty) {
  const auto image = read_image(R"({"Id":"sha256:1","Architecture":"aarch64","Os":"linux",
      "Config":{"User":"","WorkingDir":"/w","Entrypoint":null,"Cmd":["sh"],"Env":["A=1"]}})");
  ASSERT_TRUE(image) << image.error().to_string();
  EXPECT_EQ(image->id, "sha256:1");
  EXPECT_EQ(image->architecture, "arm64");
  EXPECT_TRUE(image->entrypoint.empty());
  EXPECT_EQ(image->command, std::vector<std::string>{"sh"});
  EXPECT_EQ(image->environment, std::vector<std::string>{"A=1"});
  EXPECT_TRUE(read_image(R"({"Id":"sha256:1","Config":null})"));
  EXPECT_FALSE(read_image(R"({"Architecture":"amd64"})"));
}

TEST(ReadContainer, ReadsTheEndOfAContainer) {
  const auto state = read_container(R"({"Id":"ab","Name":"/muster-x","State":{"Status":"exited",
      "ExitCode":137,"OOMKilled":true,"Error":"","FinishedAt":"2026-01-31T12:34:56.5Z"},
      "Config":{"Labels":{"a":"b"}}})");
  ASSERT_TRUE(state) << state.error().to_string();
  EXPECT_EQ(state->name, "muster-x");
  EXPECT_EQ(state->state, "exited");
  EXPECT_EQ(state->exit_code, 137);
  EXPECT_TRUE(state->out_of_memory);
  EXPECT_EQ(state->labels.at("a"), "b");
  EXPECT_EQ(state->finished,
            base::Time(std::chrono::seconds(1769862896)) + std::chrono::milliseconds(500));
}

std::optional<base::Time> finished_at(const std::string& text) {
  const auto state =
      read_container(R"({"Id":"a","State":{"Status":"exited","FinishedAt":")" + text + "\"}}");
  EXPECT_TRUE(state) << text;
  return state ? state->finished : std::nullopt;
}

TEST(ReadContainer, ReadsTheTimesOfEngines) {
  const base::Time noon(std::chrono::seconds(1769860800));
  const std::chrono::nanoseconds some(123456789);
  EXPECT_EQ(finished_at("2026-01-31T12:00:00Z"), noon);
  EXPECT_EQ(finished_at("2026-01-31T14:00:00.123456789+02:00"), noon + some);
  EXPECT_EQ(finished_at("2026-01-31T06:30:00.1234567890-05:30"), noon + some);
  for (const char* text : {"0001-01-01T00:00:00Z", "", "soon", "2026-01-31T12:00:00",
                           "2026-01-31T12:00:00+2", "2026-01-31 12:00:00Z"}) {
    EXPECT_FALSE(finished_at(text)) << text;
  }
}

TEST(ReadContainer, MapsPodmansStatesToDockers) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"configured", "created"}, {"initialized", "created"}, {"stopped", "exited"},
      {"stopping", "running"},   {"paused", "paused"},       {"removing", "removing"}};
  for (const auto& [podmans, dockers] : cases) {
    const auto state = read_container(R"({"Id":"a","State":{"Status":")" + podmans + "\"}}");
    ASSERT_TRUE(state) << podmans;
    EXPECT_EQ(state->state, dockers);
  }
}

TEST(ReadContainers, ReadsAList) {
  const auto list = read_containers(R"([{"Id":"a","Names":["/one","/other/one"],"State":"running",
      "Labels":{"k":"v"}},{"Id":"b","Names":null,"Labels":null,"State":"exited"}])");
  ASSERT_TRUE(list) << list.error().to_string();
  ASSERT_EQ(list->size(), 2U);
  EXPECT_EQ(list->at(0).name, "one");
  EXPECT_EQ(list->at(0).labels.at("k"), "v");
  EXPECT_EQ(list->at(1).state, "exited");
  EXPECT_TRUE(read_containers("[]")->empty());
  EXPECT_FALSE(read_containers("{}"));
}

TEST(ReadExec, ReadsStateAndExitCode) {
  EXPECT_TRUE(read_exec(R"({"Running":true,"ExitCode":null})")->running);
  const auto exit = read_exec(R"({"Running":false,"ExitCode":42})");
  EXPECT_FALSE(exit->running);
  EXPECT_EQ(exit->code, 42);
}

TEST(ReadNetworksAndVolumes, ReadNamesAndLabels) {
  const auto networks = read_networks(R"([{"Name":"n","Labels":{"a":"b"}},{"Name":"m"}])");
  ASSERT_TRUE(networks);
  ASSERT_EQ(networks->size(), 2U);
  EXPECT_EQ(networks->at(0).first, "n");
  EXPECT_EQ(networks->at(0).second.at("a"), "b");
  const auto volumes = read_volumes(R"({"Volumes":[{"Name":"v","Labels":null}],"Warnings":[]})");
  ASSERT_TRUE(volumes);
  ASSERT_EQ(volumes->size(), 1U);
  EXPECT_TRUE(read_volumes(R"({"Volumes":null})")->empty());
}

TEST(ReadEvent, IsTheSameForBothEngines) {
  const auto docker_event = read_event(R"({"Type":"container","Action":"die","Actor":{"ID":"ab",
      "Attributes":{"exitCode":"3","org.muster.job":"j1"}},"time":1})");
  ASSERT_TRUE(docker_event);
  EXPECT_EQ(docker_event->action, "die");
  EXPECT_EQ(docker_event->id, "ab");
  EXPECT_EQ(docker_event->attributes.at("exitCode"), "3");
  const auto podman_event = read_event(R"({"Action":"died","Actor":{"ID":"ab",
      "Attributes":{"containerExitCode":"3"}}})");
  ASSERT_TRUE(podman_event);
  EXPECT_EQ(podman_event->action, "die");
  EXPECT_EQ(podman_event->attributes.at("exitCode"), "3");
  EXPECT_EQ(read_event(R"({"Action":"remove","Actor":null})")->action, "destroy");
}

TEST(ReadPathFacts, ReadsGosModes) {
  const auto facts = [](const std::string& text) {
    const auto read = read_path_facts(base::to_base64(text));
    EXPECT_TRUE(read) << text;
    return read ? *read : PathFacts();
  };
  const PathFacts file = facts(R"({"name":"f","size":5,"mode":416,"mtime":"x","linkTarget":""})");
  EXPECT_EQ(file.mode, 0640U);
  EXPECT_EQ(file.size, 5);
  EXPECT_FALSE(file.is_folder);
  const PathFacts folder = facts(R"({"name":"d","size":0,"mode":2148532735,"linkTarget":""})");
  EXPECT_TRUE(folder.is_folder);
  EXPECT_EQ(folder.mode, 01777U);
  EXPECT_EQ(facts(R"({"name":"s","mode":12583405})").mode, 06755U);
  EXPECT_EQ(facts(R"({"name":"l","mode":134218239,"linkTarget":"/a"})").link, "/a");
  EXPECT_FALSE(read_path_facts("no base64"));
  EXPECT_FALSE(read_path_facts(base::to_base64("no json")));
}

TEST(Answers, ThatAreInvalidAreErrors) {
  for (const char* text : {"", "<html>", "{\"Id\":1}", "[1]", "{\"Id\":\"a\",\"State\":\"x\"}",
                           "{\"Id\":\"a\",\"Config\":{\"Env\":\"x\",\"Labels\":[]}}"}) {
    EXPECT_FALSE(read_container(text)) << text;
  }
  EXPECT_FALSE(read_id(""));
  EXPECT_FALSE(read_id("{}"));
  EXPECT_FALSE(read_id("null"));
  EXPECT_EQ(read_id("{").error().code, ErrorCode::kInternal);
  EXPECT_FALSE(read_image("{\"Id\":\"a\",\"Config\":{\"Env\":\"x\"}}"));
  EXPECT_FALSE(read_event("{\"Action\":7}"));
  EXPECT_FALSE(read_exec("no"));
  DockerInfo info;
  EXPECT_FALSE(read_info("{\"NCPU\":\"many\"}", info));
}

TEST(ReadWords, AreTheMessageOrTheBodyItself) {
  const EngineWords podman_error =
      read_words(R"({"cause":"no such container","message":"long story","response":404})");
  EXPECT_EQ(podman_error.message, "long story");
  EXPECT_EQ(podman_error.cause, "no such container");
  EXPECT_EQ(read_words("client version 1.10 is too old\r\n").message,
            "client version 1.10 is too old");
  EXPECT_EQ(read_words("").message, "");
  EXPECT_EQ(read_words("{\"message\":7}").message, "{\"message\":7}");
}

}  // namespace
}  // namespace muster::engine
