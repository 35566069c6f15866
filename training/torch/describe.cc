#include "describe.h"

#include <exception>
#include <sstream>
#include <typeinfo>

namespace muster::training {

using collective::DataType;

std::optional<DataType> data_type_of(torch::ScalarType type) {
  switch (type) {
    case torch::kFloat32:
      return DataType::kFloat32;
    case torch::kFloat64:
      return DataType::kFloat64;
    case torch::kFloat16:
      return DataType::kFloat16;
    case torch::kBFloat16:
      return DataType::kBFloat16;
    case torch::kInt32:
      return DataType::kInt32;
    case torch::kInt64:
      return DataType::kInt64;
    case torch::kInt16:
      return DataType::kInt16;
    case torch::kInt8:
      return DataType::kInt8;
    case torch::kUInt8:
      return DataType::kUInt8;
    case torch::kBool:
      return DataType::kBool;
    default:
      return std::nullopt;
  }
}

std::string type_name(torch::ScalarType type) {
  const std::optional<DataType> known = data_type_of(type);
  return known ? std::string(collective::to_string(*known)) : torch::toString(type);
}

std::vector<NamedTensor> tensors_of(const torch::nn::Module& model) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : model.named_parameters()) tensors.push_back({item.key(), item.value()});
  for (const auto& item : model.named_buffers()) tensors.push_back({item.key(), item.value()});
  return tensors;
}

std::string describe(const NamedTensor& tensor) {
  std::string text = tensor.name + ": ";
  if (!tensor.tensor.defined()) return text + "undefined";
  text += type_name(tensor.tensor.scalar_type()) + " [";
  for (std::int64_t i = 0; i < tensor.tensor.dim(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(tensor.tensor.size(i));
  }
  return text + "]";
}

std::vector<std::string> describe(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> lines;
  for (const NamedTensor& tensor : tensors) lines.push_back(describe(tensor));
  return lines;
}

std::string describe(const torch::optim::Optimizer& optimizer) {
  std::string name = c10::demangle(typeid(optimizer).name());
  name = name.substr(name.rfind(':') + 1);
  std::string counts;
  for (const auto& group : optimizer.param_groups()) {
    counts += (counts.empty() ? "" : " + ") + std::to_string(group.params().size());
  }
  return name + " with " + counts + " parameters";
}

namespace {

using collective::Error;
using collective::ErrorCode;
using collective::Result;
using collective::Status;

std::string group_key(std::size_t group) {
  return "options/" + std::to_string(group);
}

void write_options(const torch::optim::Optimizer& optimizer,
                   torch::serialize::OutputArchive& archive) {
  for (std::size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    torch::serialize::OutputArchive options(archive.compilation_unit());
    optimizer.param_groups()[i].options().serialize(options);
    archive.write(group_key(i), options);
  }
}

void read_options(torch::optim::Optimizer& optimizer, torch::serialize::InputArchive& archive) {
  for (std::size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    torch::serialize::InputArchive options;
    archive.read(group_key(i), options);
    optimizer.param_groups()[i].options().serialize(options);
  }
}

}  // namespace

Result<std::string> option_bytes_of(const torch::optim::Optimizer& optimizer) {
  try {
    torch::serialize::OutputArchive archive;
    write_options(optimizer, archive);
    std::ostringstream bytes;
    archive.save_to(bytes);
    return std::move(bytes).str();
  } catch (const std::exception& thrown) {
    return Error{ErrorCode::kBadArgument,
                 std::string("the optimizer's options cannot be saved: ") + thrown.what()};
  }
}

Status restore_options(torch::optim::Optimizer& optimizer, const std::string& bytes) {
  try {
    torch::serialize::InputArchive archive;
    archive.load_from(bytes.data(), bytes.size());
    read_options(optimizer, archive);
  } catch (const std::exception& thrown) {
    return Error{ErrorCode::kBadArgument,
                 std::string("the optimizer's options cannot be restored: ") + thrown.what()};
  }
  return {};
}

Result<std::string> bytes_of(const torch::optim::Optimizer& optimizer) {
  try {
    torch::serialize::OutputArchive archive;
    torch::serialize::OutputArchive state(archive.compilation_unit());
    optimizer.save(state);
    archive.write("state", state);
    // The optimizer's own load() does not restore the options, so they are stored separately.
    write_options(optimizer, archive);
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
    read_options(optimizer, archive);
  } catch (const std::exception& thrown) {
    return Error{ErrorCode::kBadArgument,
                 std::string("the optimizer's state cannot be restored: ") + thrown.what()};
  }
  return {};
}

}  // namespace muster::training
