#include "muster/parameter_server/optimizer.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace muster::parameter_server {
namespace {

using collective::Error;
using collective::ErrorCode;
using collective::Status;

std::string number(double value) {
  std::array<char, 32> text = {};
  std::snprintf(text.data(), text.size(), "%.9g", value);
  return text.data();
}

class Faults {
 public:
  void unless(bool right, const std::string& fault) {
    if (!right) text_ += (text_.empty() ? "" : "; ") + fault;
  }

  // Rejects NaN as well.
  void unless_share(const char* name, double value) {
    unless(value >= 0 && value < 1,
           std::string(name) + " is " + number(value) + ", not at least 0 and below 1");
  }

  void unless_positive(const char* name, double value) {
    unless(value > 0 && std::isfinite(value),
           std::string(name) + " is " + number(value) + ", not above 0");
  }

  Status status() const {
    if (text_.empty()) return {};
    return Error{ErrorCode::kBadArgument, text_};
  }

 private:
  std::string text_;
};

Status faults_of(const Sgd& sgd) {
  Faults faults;
  faults.unless_positive("the learning rate", sgd.learning_rate);
  faults.unless_share("the momentum", sgd.momentum);
  faults.unless(!sgd.nesterov || sgd.momentum != 0, "Nesterov's step requires a momentum above 0");
  return faults.status();
}

Status faults_of(const Adam& adam) {
  Faults faults;
  faults.unless_positive("the learning rate", adam.learning_rate);
  faults.unless_share("beta1", adam.beta1);
  faults.unless_share("beta2", adam.beta2);
  faults.unless_positive("epsilon", adam.epsilon);
  return faults.status();
}

std::string text_of(const Sgd& sgd) {
  std::string text = "sgd, learning rate " + number(sgd.learning_rate);
  if (sgd.momentum != 0) text += ", momentum " + number(sgd.momentum);
  if (sgd.nesterov) text += " (Nesterov)";
  return text;
}

std::string text_of(const Adam& adam) {
  return "adam, learning rate " + number(adam.learning_rate) + ", beta1 " + number(adam.beta1) +
         ", beta2 " + number(adam.beta2) + ", epsilon " + number(adam.epsilon);
}

}  // namespace

Status check(const Optimizer& optimizer) {
  return std::visit([](const auto& one) { return faults_of(one); }, optimizer);
}

std::string to_string(const Optimizer& optimizer) {
  return std::visit([](const auto& one) { return text_of(one); }, optimizer);
}

}  // namespace muster::parameter_server
