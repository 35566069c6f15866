#include "resnet.h"

#include <gtest/gtest.h>

#include "images.h"

namespace muster::resnet20 {
namespace {

TEST(ResNet20, HasTheKnownNumberOfParameters) {
  const ResNet20 model;
  std::int64_t count = 0;
  for (const torch::Tensor& parameter : model->parameters()) count += parameter.numel();
  EXPECT_EQ(count, 272'474);
}

TEST(ResNet20, GivesEveryParameterAGradient) {
  torch::manual_seed(1);
  ResNet20 model;
  const torch::Tensor output = model(torch::randn({2, kChannels, kSide, kSide}));
  EXPECT_EQ(output.sizes(), (std::vector<std::int64_t>{2, kClasses}));
  output.pow(2).sum().backward();
  for (const auto& item : model->named_parameters()) {
    EXPECT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_GT(item.value().grad().abs().sum().item<double>(), 0) << item.key();
  }
}

TEST(ResNet20, PassesTheNamesOfItsNormalisations) {
  std::vector<std::string> names;
  const ResNet20 model([&](const std::string& name, std::int64_t features) {
    names.push_back(name);
    return batch_norm(name, features);
  });
  EXPECT_EQ(names.size(), 1 + 9 * 2 + 2u);
  for (const std::string& name : names) {
    EXPECT_TRUE(model->named_parameters().contains(name + ".weight")) << name;
  }
}

}  // namespace
}  // namespace muster::resnet20
