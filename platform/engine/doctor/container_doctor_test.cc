#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "engine/doctor/doctor.h"

namespace muster::engine::doctor {

using job::Finding;

using Verdict = job::Finding::Verdict;

namespace {

DockerInfo podman() {
  return {.api_version = "1.41",
          .is_podman = true,
          .version = "4.3.1",
          .os = "linux",
          .architecture = "amd64",
          .cpus = 8,
          .memory_bytes = int64_t{16} << 30};
}

ContainerFacts facts_of(std::vector<HostFacts> hosts) {
  return {.has_helper = true, .programs = "/opt/libexec", .hosts = std::move(hosts)};
}

TEST(ContainerDoctor, DescribesTheEngineOfEachHost) {
  const job::Diagnosis diagnosis = diagnose(
      facts_of({{.name = "here", .endpoint = "unix:///run/podman/podman.sock", .info = podman()}}));

  EXPECT_TRUE(can_run(diagnosis));
  ASSERT_EQ(diagnosis.findings.size(), 3U);
  EXPECT_EQ(
      diagnosis.findings[1],
      (Finding{"host here", Verdict::kFine,
               "unix:///run/podman/podman.sock: Podman 4.3.1 (API 1.41), linux/amd64, 8 CPUs, "
               "16Gi",
               ""}));
  EXPECT_EQ(diagnosis.findings[2].verdict, Verdict::kNote);
  EXPECT_NE(diagnosis.findings[2].advice.find("host_gpus"), std::string::npos);
}

TEST(ContainerDoctor, OneAnsweringHostIsEnough) {
  const HostFacts silent{.name = "b",
                         .endpoint = "ssh://b",
                         .fault = base::Error{.what = "no route to host", .advice = "plug it in"}};
  job::Diagnosis diagnosis =
      diagnose(facts_of({{.name = "a", .endpoint = "unix:///a", .info = podman()}, silent}));
  EXPECT_TRUE(can_run(diagnosis));
  EXPECT_EQ(diagnosis.findings.back(),
            (Finding{"host b", Verdict::kLacks, "ssh://b does not answer: no route to host",
                     "plug it in"}));

  diagnosis = diagnose(facts_of({silent, {.name = "c", .endpoint = "unix:///c"}}));
  EXPECT_FALSE(can_run(diagnosis));
  EXPECT_EQ(diagnosis.findings.back().text, "unix:///c does not answer: it did not answer in time");
}

TEST(ContainerDoctor, ReportsWhyContainersCannotUseGpus) {
  DockerInfo docker = podman();
  docker.is_podman = false;
  HostFacts host{.name = "a", .endpoint = "unix:///a", .info = docker};
  host.declared_gpus = DeclaredGpus{.count = 2};
  EXPECT_EQ(diagnose(facts_of({host})).findings.back().verdict, Verdict::kLacks);
  host.info->has_nvidia_runtime = true;
  EXPECT_EQ(diagnose(facts_of({host})).findings.back().verdict, Verdict::kFine);
  host.info->os = "windows";
  EXPECT_FALSE(can_run(diagnose(facts_of({host}))));
}

TEST(ContainerDoctor, ReportsWhyThereIsNoHost) {
  const job::Diagnosis diagnosis = diagnose(
      {.has_helper = false,
       .programs = "/opt",
       .hosts = base::Error{.what = "no Docker or Podman was found",
                            .advice = "start one",
                            .faults = {{.field = "container_hosts.a", .what = "is odd"},
                                       {.field = "/run/docker.sock", .what = "is none"}}}});
  EXPECT_FALSE(can_run(diagnosis));
  ASSERT_EQ(diagnosis.findings.size(), 4U);
  EXPECT_EQ(diagnosis.findings[0].verdict, Verdict::kFails);
  EXPECT_EQ(diagnosis.findings[3], (Finding{"tried", Verdict::kNote, "/run/docker.sock", ""}));
  EXPECT_EQ(diagnosis.findings[1].advice, "start one");
  EXPECT_EQ(diagnosis.findings[2].subject, "container_hosts.a");
}

TEST(ContainerLook, ReportsASocketWithoutAListener) {
  const base::TestFolder folder;
  const ContainerHostOptions here{.name = "here",
                                  .endpoint = UnixEndpoint{.socket = folder / "none.sock"}};

  const ContainerFacts facts = look_at_containers(std::vector{here}, folder.path());

  EXPECT_FALSE(facts.has_helper);
  ASSERT_TRUE(facts.hosts);
  ASSERT_EQ(facts.hosts->size(), 1U);
  EXPECT_FALSE(facts.hosts->front().info);
  ASSERT_TRUE(facts.hosts->front().fault);
  EXPECT_FALSE(can_run(diagnose(facts)));
}

}  // namespace
}  // namespace muster::engine::doctor
