// Networks, volumes, GPUs and rights of containers of a real engine: see test_real_engine.h.
#include <gtest/gtest.h>

#include "engine/container/test_real_engine.h"

namespace muster::engine {
namespace {

using base::ErrorCode;

TEST_F(DockerClientPodman, ContainersHaveTheRequestedRestrictions) {
  const auto run_as = [&](const std::string& name, std::vector<std::string> program) {
    ContainerConfig settings = config("strict-" + name, std::move(program));
    settings.read_only_root = true;
    settings.hostname = "strict";
    settings.user = "1000:1000";
    settings.memory_bytes = 64 << 20;
    settings.cpu_milli = 500;
    settings.shm_bytes = 32 << 20;
    settings.mounts = {{.kind = DockerMount::Kind::kTmpfs, .source = "", .target = "/tmp"}};
    settings.extra_hosts = {{"friend", "10.1.2.3"}};
    const RecordedStream recorded = run(settings);
    const auto state = inspect(settings.name);
    return std::pair(state ? state->exit_code : -1, recorded.output);
  };

  const auto [code, capabilities] = run_as("capabilities", {"/program", "capabilities"});
  EXPECT_EQ(code, 0);
  EXPECT_NE(capabilities.find("NoNewPrivs:\t1"), std::string::npos) << capabilities;
  EXPECT_EQ(run_as("root", {"/program", "write", "/home/new"}).first, 1);
  EXPECT_EQ(run_as("tmp", {"/program", "write", "/tmp/new"}).first, 0);
  EXPECT_EQ(run_as("tmp-mode", {"/program", "stat", "/tmp"}).second, "1777 0:0 d");
}

TEST_F(DockerClientPodman, AGangHasANetworkOfItsOwn) {
  const std::string name = "muster-client-test-net";
  networks_.push_back(name);
  const auto id = loop_.answer<std::string>(
      [&](auto then) { client_.create_network(name, kLabels, std::move(then)); });
  ASSERT_TRUE(id) << id.error().to_string();
  const auto again = loop_.answer<std::string>(
      [&](auto then) { client_.create_network(name, kLabels, std::move(then)); });
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kConflict) << again.error().to_string();
  using Named = std::vector<std::pair<std::string, std::map<std::string, std::string>>>;
  const auto found =
      loop_.answer<Named>([&](auto then) { client_.networks(kFilter, std::move(then)); });
  ASSERT_TRUE(found) << found.error().to_string();
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().first, name);
  EXPECT_EQ(found->front().second.at(kLabel), "1");

  ContainerConfig settings = config("on-net", {"/program", "wait"});
  settings.network = name;
  settings.hostname = "worker-0";
  settings.aliases = {"worker-0"};
  const std::string container = create(settings);
  ASSERT_TRUE(start(container));
  const auto busy = done([&](auto then) { client_.remove_network(name, then); });
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, ErrorCode::kConflict) << busy.error().to_string();

  ASSERT_TRUE(remove(container));
  EXPECT_TRUE(done([&](auto then) { client_.remove_network(name, then); }));
  EXPECT_TRUE(done([&](auto then) { client_.remove_network(name, then); }));
}

TEST_F(DockerClientPodman, AVolumeOutlivesItsContainers) {
  const std::string name = "muster-client-test-volume";
  volumes_.push_back(name);
  ASSERT_TRUE(done([&](auto then) { client_.create_volume(name, kLabels, then); }));
  EXPECT_TRUE(done([&](auto then) { client_.create_volume(name, kLabels, then); }));
  ContainerConfig writer = config("writer", {"/program", "exit", "0"});
  writer.mounts = {{.source = name, .target = "/shared"}};
  const std::string first = create(writer);
  ASSERT_TRUE(put(first, "/shared", {file("kept", "12", 0604)}));
  const auto busy = done([&](auto then) { client_.remove_volume(name, then); });
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, ErrorCode::kConflict) << busy.error().to_string();
  ASSERT_TRUE(remove(first));

  ContainerConfig reader = config("reader", {"/program", "stat", "/shared/kept"});
  reader.mounts = {{.source = name, .target = "/shared", .read_only = true}};
  EXPECT_EQ(run(reader).output, "0604 0:0 f");
  ContainerConfig intruder = config("intruder", {"/program", "write", "/shared/new"});
  intruder.mounts = reader.mounts;
  run(intruder);
  EXPECT_EQ(inspect(intruder.name)->exit_code, 1);

  using Named = std::vector<std::pair<std::string, std::map<std::string, std::string>>>;
  const auto found =
      loop_.answer<Named>([&](auto then) { client_.volumes(kFilter, std::move(then)); });
  ASSERT_TRUE(found) << found.error().to_string();
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().first, name);
  ASSERT_TRUE(remove(reader.name));
  ASSERT_TRUE(remove(intruder.name));
  EXPECT_TRUE(done([&](auto then) { client_.remove_volume(name, then); }));
  EXPECT_TRUE(done([&](auto then) { client_.remove_volume(name, then); }));
}

TEST_F(DockerClientPodman, RemovingAMissingVolumeKeepsOneWhoseNameBeginsWithItsName) {
  const std::string name = "muster-client-test-data2";
  volumes_.push_back(name);
  ASSERT_TRUE(done([&](auto then) { client_.create_volume(name, kLabels, then); }));

  EXPECT_TRUE(done([&](auto then) { client_.remove_volume("muster-client-test-data", then); }));

  using Named = std::vector<std::pair<std::string, std::map<std::string, std::string>>>;
  const auto found =
      loop_.answer<Named>([&](auto then) { client_.volumes(kFilter, std::move(then)); });
  ASSERT_TRUE(found) << found.error().to_string();
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().first, name);
}

TEST_F(DockerClientPodman, MissingGpusAreAnError) {
  ContainerConfig settings = config("gpus", {"/program", "show", "GREETING"});
  settings.gpus = {"77"};
  settings.environment = {"A=b"};
  settings.mounts = {{.source = "", .target = "/muster"},
                     {.kind = DockerMount::Kind::kTmpfs, .source = "", .target = "/tmp"}};
  settings.memory_bytes = 64 << 20;
  settings.cpu_milli = 500;
  settings.shm_bytes = 32 << 20;
  settings.extra_hosts = {{"friend", "10.1.2.3"}};
  const std::string id = create(settings);

  const auto started = start(id);

  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kInvalid) << started.error().to_string();
}

TEST_F(DockerClientPodman, AGpuIsGivenByItsCdiName) {
  networks_.emplace_back("muster-client-test-gpu");
  volumes_.emplace_back("muster-client-test-gpu");
  ASSERT_TRUE(loop_.answer<std::string>([&](auto then) {
    client_.create_network("muster-client-test-gpu", kLabels, std::move(then));
  }));
  ASSERT_TRUE(
      done([&](auto then) { client_.create_volume("muster-client-test-gpu", kLabels, then); }));
  const auto run_as = [&](const std::string& name, std::vector<std::string> program) {
    ContainerConfig settings = config("gpu-" + name, std::move(program));
    settings.gpus = {"0"};
    settings.network = "muster-client-test-gpu";
    settings.aliases = {"worker-0"};
    settings.hostname = "worker-0";
    settings.user = "1000:1000";
    settings.environment = {"NAME=a=b c"};
    settings.folder = "/tmp";
    settings.memory_bytes = 64 << 20;
    settings.cpu_milli = 500;
    settings.shm_bytes = 32 << 20;
    settings.read_only_root = true;
    settings.open_input = true;
    settings.mounts = {{.source = "", .target = "/muster"},
                       {.source = "muster-client-test-gpu", .target = "/shared", .read_only = true},
                       {.kind = DockerMount::Kind::kTmpfs, .source = "", .target = "/tmp"}};
    settings.extra_hosts = {{"friend", "10.1.2.3"}};
    RecordedStream recorded;
    const std::string id = create(settings);
    EXPECT_TRUE(attach(id, recorded));
    EXPECT_TRUE(start(id));
    recorded.stream->write("input");
    recorded.stream->close_input();
    EXPECT_TRUE(loop_.run_until([&] { return recorded.ended; }));
    const auto state = state_at_end(id);
    EXPECT_TRUE(state && state->labels.contains(kLabel));
    return std::pair(state ? state->exit_code : -1, recorded.output);
  };

  EXPECT_EQ(run_as("variable", {"/program", "show", "FAKE_GPU"}).second, "0");
  EXPECT_EQ(run_as("device", {"/program", "stat", "/dev/fakegpu0"}).first, 0);
  EXPECT_EQ(run_as("name", {"/program", "show", "NAME"}).second, "a=b c");
  EXPECT_EQ(run_as("input", {"/program", "cat"}).second, "input");
  EXPECT_NE(run_as("strict", {"/program", "capabilities"}).second.find("NoNewPrivs:\t1"),
            std::string::npos);
  EXPECT_EQ(run_as("root", {"/program", "write", "/home/new"}).first, 1);
  EXPECT_EQ(run_as("tmp", {"/program", "write", "/tmp/new"}).first, 0);
  EXPECT_EQ(run_as("shared", {"/program", "write", "/shared/new"}).first, 1);
}

}  // namespace
}  // namespace muster::engine
