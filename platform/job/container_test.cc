#include "job/container.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace muster::job {
namespace {

TEST(ImageName, IsAcceptedIfRegistriesAndEnginesAcceptIt) {
  for (const std::string& name :
       {std::string("w"), std::string("python:3"), std::string("horovod/horovod:0.18.1-tf1.14.0"),
        std::string("nvcr.io/nvidia/pytorch:24.01-py3"),
        std::string("gcr.io/run-ai-demo/quickstart-distributed"),
        std::string("localhost/muster-test:latest"), std::string("localhost:5000/a/b/c__d/e--f"),
        std::string("[::1]:5000/a"), std::string("Registry.Example.com/team/a.b_c"),
        std::string("a@sha256:") + std::string(64, 'a'),
        std::string("a:1.2@sha256:") + std::string(64, '0'),
        std::string("sha256:") + std::string(64, 'f'), std::string("a:TAG_with.CAPITALS-1")}) {
    EXPECT_EQ(fault_of_image_name(name), "") << name;
  }
}

TEST(ImageName, HasAFaultOtherwise) {
  const std::string no_tag =
      "has no valid tag after its last ':'; use letters, digits, '_', '.' and '-'";
  const std::string no_digest = "has no valid digest after its '@', as in sha256:9f86d0...";
  const std::string empty_part = "has an empty part before or after a '/'";
  const std::string capitals = "has capital letters; only a tag may have them";
  const std::string signs =
      "has characters that a path may not have: use a-z and 0-9, with '.', '_' and '-' between "
      "them";
  const std::vector<std::pair<std::string, std::string>> table{
      {"docker://python", "is a URL; leave 'docker://' out"},
      {"https://nvcr.io/a", "is a URL; leave 'https://' out"},
      {"python:", no_tag},
      {"python:-1", no_tag},
      {"python:3/4:", no_tag},
      {"python:" + std::string(129, 'x'), no_tag},
      {"a@", no_digest},
      {"a@sha256", no_digest},
      {"a@sha256:12", no_digest},
      {"a@sha256:" + std::string(64, 'A'), no_digest},
      {"/a", empty_part},
      {"a/", empty_part},
      {"a//b", empty_part},
      {":1", "has no name before its tag"},
      {"Python", capitals},
      {"nvcr.io/NVIDIA/a", capitals},
      {"a_", signs},
      {"a..b", signs},
      {"a___b", signs},
      {"a._b", signs},
      {"a/.b", signs},
      {"a$b", signs},
  };
  for (const auto& [name, fault] : table) EXPECT_EQ(fault_of_image_name(name), fault) << name;
}

TEST(Registry, OfAnImageIsTheHostInItsName) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"python", "docker.io"},
      {"python:3.11", "docker.io"},
      {"horovod/horovod:0.18", "docker.io"},
      {"docker.io/library/python", "docker.io"},
      {"nvcr.io/nvidia/pytorch:24.01-py3", "nvcr.io"},
      {"localhost/a", "localhost"},
      {"registry:5000/a/b", "registry:5000"},
  };
  for (const auto& [image, registry] : table) EXPECT_EQ(registry_of_image(image), registry);
}

TEST(Registry, IsAHostWithAnOptionalPort) {
  for (const char* name : {"docker.io", "localhost", "r.example.com:5000", "10.0.0.1", "[fe80::1]",
                           "[::1]:443", "my-registry"}) {
    EXPECT_TRUE(is_registry(name)) << name;
  }
  for (const char* name : {"", ".", "a.", ".a", "a..b", "-a", "a:", "a:0", "a:65536", "a:b", "a/b",
                           "https://a", "[]", "a b"}) {
    EXPECT_FALSE(is_registry(name)) << name;
  }
}

}  // namespace
}  // namespace muster::job
