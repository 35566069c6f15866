#include "engine/container/pull_fault.h"

#include <gtest/gtest.h>

namespace muster::engine {
namespace {

using base::Error;
using base::ErrorCode;

ImageWish wish(const std::string& username = "") {
  return {.node = "gpu-1", .image = "reg.example.org/team/train:1", .username = username};
}

TEST(PullFault, NamesTheNodeAndSaysWhatToDo) {
  const std::pair<ErrorCode, std::string> cases[] = {
      {ErrorCode::kRefused, "--registry-username USER --registry-secret NAME"},
      {ErrorCode::kNotFound, "podman save and load"},
      {ErrorCode::kExhausted, "podman image prune"},
      {ErrorCode::kInvalid, "registry.example.org/team/train:v7"},
      {ErrorCode::kUnavailable, "see to it; an image that was built elsewhere"},
      {ErrorCode::kInternal, "see to it"},
  };
  for (const auto& [code, advice] : cases) {
    const Error fault =
        pull_fault(wish(), {.code = code, .what = "it failed", .advice = "see to it"});
    EXPECT_EQ(fault.code, code);
    EXPECT_TRUE(fault.what.starts_with("node 'gpu-1': it failed")) << fault.what;
    EXPECT_NE(fault.advice.find(advice), std::string::npos) << fault.advice;
  }
}

TEST(PullFault, SaysWhomTheRegistryRefused) {
  const Error refusal{.code = ErrorCode::kRefused, .what = "unauthorized"};
  EXPECT_EQ(pull_fault(wish(), refusal).what, "node 'gpu-1': unauthorized; nobody logged in there");

  const Error ada = pull_fault(wish("ada"), refusal);
  EXPECT_EQ(ada.what, "node 'gpu-1': unauthorized; user 'ada' logged in there");
  EXPECT_NE(ada.advice.find("the password of that user"), std::string::npos) << ada.advice;
}

TEST(ImageIsMissing, SaysThatNoneWasFetched) {
  const Error error = image_is_missing(wish());
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_EQ(error.what,
            "node 'gpu-1' has no image 'reg.example.org/team/train:1', and none was fetched: "
            "--image-pull-policy is never");
}

TEST(LocalName, IsThatOfNoRegistry) {
  EXPECT_TRUE(is_local_name("localhost/train:1"));
  EXPECT_FALSE(is_local_name("localhost:5000/train:1"));
  EXPECT_FALSE(is_local_name("train:1"));
  ImageWish local = wish();
  local.image = "localhost/train:1";
  EXPECT_EQ(local_image_is_missing(local).what,
            "node 'gpu-1' has no image 'localhost/train:1', and names that begin with localhost/ "
            "are of no registry");
}

TEST(WrongProcessor, NamesBoth) {
  EXPECT_EQ(wrong_processor(wish(), "arm64", "amd64").what,
            "image 'reg.example.org/team/train:1' is for arm64; node 'gpu-1' is amd64");
}

}  // namespace
}  // namespace muster::engine
