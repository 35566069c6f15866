#include "optimizer_bytes.h"

#include <exception>
#include <sstream>

namespace muster::training {
namespace {

using collective::Error;
using collective::ErrorCode;
using collective::Result;
using collective::Status;

std::string group_key(std::size_t group) {
  return "options/" + std::to_string(group);
}

}  // namespace

Result<std::string> bytes_of(const torch::optim::Optimizer& optimizer) {
  try {
    torch::serialize::OutputArchive archive;
    torch::serialize::OutputArchive state(archive.compilation_unit());
    optimizer.save(state);
    archive.write("state", state);
    // The optimizer's own load() leaves the options as they are: they travel beside it.
    for (std::size_t i = 0; i < optimizer.param_groups().size(); ++i) {
      torch::serialize::OutputArchive options(archive.compilation_unit());
      optimizer.param_groups()[i].options().serialize(options);
      archive.write(group_key(i), options);
    }
    std::ostringstream bytes;
    archive.save_to(bytes);
    return std::move(bytes).str();
  } catch (const std::exception& thrown) {
    return Error{ErrorCode::kBadArgument,
                 std::string("the optimizer cannot be saved: ") + thrown.what()};
  }
}

Status restore(torch::optim::Optimizer& optimizer, const std::string& bytes) {
  try {
    torch::serialize::InputArchive archive;
    archive.load_from(bytes.data(), bytes.size());
    torch::serialize::InputArchive state;
    archive.read("state", state);
    optimizer.state().clear();
    optimizer.load(state);
    for (std::size_t i = 0; i < optimizer.param_groups().size(); ++i) {
      torch::serialize::InputArchive options;
      archive.read(group_key(i), options);
      optimizer.param_groups()[i].options().serialize(options);
    }
  } catch (const std::exception& thrown) {
    return Error{ErrorCode::kBadArgument,
                 std::string("the optimizer's state cannot be taken over: ") + thrown.what()};
  }
  return {};
}

}  // namespace muster::training
