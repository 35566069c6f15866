#include "engine/container/options.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::engine {
namespace {

Surroundings with_docker() {
  return {.variable = [](const std::string&) { return std::nullopt; },
          .is_socket = [](const auto& path) { return path == "/run/docker.sock"; },
          .user = 1000};
}

TEST(ReadHosts, UsesTheEngineOfThisMachineByDefault) {
  const auto hosts = read_hosts({.own_name = "laptop", .own_gpus = "2:A100"}, with_docker());
  ASSERT_TRUE(hosts) << hosts.error().to_string();
  ASSERT_EQ(hosts->size(), 1U);
  EXPECT_EQ(hosts->front().name, "laptop");
  EXPECT_EQ(to_string(hosts->front().endpoint), "unix:///run/docker.sock");
  EXPECT_EQ(hosts->front().declared_gpus->count, 2);
}

TEST(ReadHosts, ReadsEachNamedHost) {
  const auto hosts = read_hosts({.endpoints = {{"a", "/a.sock"}, {"b", "ssh://b"}},
                                 .addresses = {{"a", "10.0.0.1"}},
                                 .gpus = {{"b", "8:H100:80G"}}},
                                with_docker());
  ASSERT_TRUE(hosts) << hosts.error().to_string();
  ASSERT_EQ(hosts->size(), 2U);
  EXPECT_EQ((*hosts)[0].address, "10.0.0.1");
  EXPECT_FALSE((*hosts)[0].declared_gpus);
  EXPECT_EQ((*hosts)[1].name, "b");
  EXPECT_EQ((*hosts)[1].declared_gpus->model, "H100");
}

TEST(ReadHosts, RequiresAnAddressForASocketBesideOtherHosts) {
  EXPECT_TRUE(read_hosts({.endpoints = {{"a", "/a.sock"}}}, with_docker()));
  const auto two = read_hosts({.endpoints = {{"a", "/a.sock"}, {"b", "ssh://b"}}}, with_docker());
  ASSERT_FALSE(two);
  ASSERT_EQ(two.error().faults.size(), 1U);
  EXPECT_EQ(two.error().faults.front().field, "host_addresses.a");
}

TEST(ReadHosts, ReportsAllFaultsAtOnce) {
  const auto hosts = read_hosts({.endpoints = {{"a", "a.sock"}, {"b", "tcp://b"}, {"c", "ssh://c"}},
                                 .gpus = {{"c", "many"}},
                                 .certificates = "/nowhere"},
                                with_docker());
  ASSERT_FALSE(hosts);
  const std::string text = hosts.error().to_string();
  for (const char* expected : {"container_hosts.a: 'a.sock' is not the address",
                               "container_hosts.b: /nowhere/ca.pem", "host_gpus.c: "}) {
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\nin\n" << text;
  }
}

TEST(OwnerOf, IsCreatedOnceAndReadableOnlyByItsUser) {
  const base::TestFolder folder;
  const auto first = owner_of(folder);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->size(), 20U);
  EXPECT_EQ(*owner_of(folder), *first);
  struct stat status{};
  ASSERT_EQ(::stat((folder / "container-owner").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);

  const base::TestFolder other;
  EXPECT_NE(*owner_of(other), *first);
}

TEST(WaysIn, AreSocketsAndTheCertificatesOfClients) {
  EXPECT_EQ(
      ways_in({{.name = "a", .endpoint = UnixEndpoint{"/run/docker.sock"}},
               {.name = "b", .endpoint = TlsEndpointOfHost{.host = "b", .certificates = "/c"}},
               {.name = "c", .endpoint = SshEndpoint{.host = "c"}}}),
      (std::vector<std::filesystem::path>{"/run/docker.sock", "/c"}));
}

TEST(OwnerOf, RefusesAFileThatAnotherProgramChanged) {
  const base::TestFolder folder;
  ASSERT_TRUE(base::write_file(folder / "container-owner", "me"));
  const auto owner = owner_of(folder);
  ASSERT_FALSE(owner);
  EXPECT_NE(owner.error().what.find("was changed by another program"), std::string::npos);
}

}  // namespace
}  // namespace muster::engine
