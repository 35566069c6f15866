#include "parameter_server/model.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace muster::parameter_server {
namespace {

using collective::Error;
using collective::ErrorCode;
using collective::Result;
using collective::Status;

Error differ(const std::string& what, const std::string& first, const std::string& later) {
  return {ErrorCode::kMismatch,
          what + " was declared as " + first + " by the first worker, and now as " + later,
          "all workers of a job must declare the same model"};
}

std::string place_of(const Declaration& declaration) {
  return "number " + std::to_string(declaration.server) + " of " +
         std::to_string(declaration.servers);
}

const Tensor* find(const std::vector<Tensor>& tensors, const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const Tensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

Status compare_tensors(const std::vector<Tensor>& first, const std::vector<Tensor>& later) {
  for (std::size_t i = 0; i < std::max(first.size(), later.size()); ++i) {
    if (i < first.size() && i < later.size() && first[i] == later[i]) continue;
    if (i < later.size()) {
      const Tensor* const same = find(first, later[i].name);
      if (same == nullptr) return differ("'" + later[i].name + "'", "nothing", shape_of(later[i]));
      if (same->shape != later[i].shape) {
        return differ("'" + same->name + "'", shape_of(*same), shape_of(later[i]));
      }
    }
    if (i < first.size() && find(later, first[i].name) == nullptr) {
      return differ("'" + first[i].name + "'", shape_of(first[i]), "nothing");
    }
    return differ("parameter " + std::to_string(i), "'" + first[i].name + "'",
                  "'" + later[i].name + "'");
  }
  return {};
}

// The worker waits until its step is done, and must not be delayed by it. Starting a thread takes
// some tens of microseconds, as long as the step of a slice, and a few threads saturate the memory.
std::size_t threads_for(std::uint64_t elements) {
  constexpr std::size_t kMost = 4;
  const std::size_t worthwhile = elements / (4 * kSliceElements) + 1;
  const std::size_t processors = std::max(1U, std::thread::hardware_concurrency());
  return std::min({kMost, worthwhile, processors});
}

}  // namespace

Status compare(const Declaration& first, const Declaration& later) {
  if (place_of(first) != place_of(later)) {
    return differ("this parameter server", place_of(first), place_of(later));
  }
  if (first.optimizer != later.optimizer) {
    return differ("the optimizer", to_string(first.optimizer), to_string(later.optimizer));
  }
  return compare_tensors(first.tensors, later.tensors);
}

Model::Model(Declaration declaration, std::vector<float> values)
    : declaration_(std::move(declaration)),
      catalogue_(declaration_.tensors),
      values_(std::move(values)),
      of_tensor_(declaration_.tensors.size()) {
  std::size_t at = 0;
  for (const Slice& slice :
       part_of(declaration_.tensors, declaration_.server, declaration_.servers)) {
    of_tensor_[slice.tensor].push_back(held_.size());
    held_.push_back(std::make_unique<Held>(slice, std::span(values_).subspan(at, slice.count),
                                           declaration_.optimizer));
    at += slice.count;
  }
}

Result<Model::Selection> Model::select(std::span<const NamedTensor> tensors) const {
  const Result<std::vector<std::size_t>> places = catalogue_.look_up(tensors);
  if (!places) return places.error();
  Selection selection;
  selection.model_ = this;
  for (const std::size_t place : *places) {
    for (const std::size_t held : of_tensor_[place]) {
      selection.held_.push_back(held_[held].get());
      selection.elements_ += held_[held]->slice.count;
    }
  }
  return selection;
}

void Model::read(const Selection& selection, std::size_t i, std::byte* to) const {
  const Held& held = *selection.held_[i];
  const std::lock_guard lock(held.mutex);
  std::memcpy(to, held.values.data(), held.values.size_bytes());
}

std::uint64_t Model::tensors_here() const {
  return static_cast<std::uint64_t>(std::count_if(
      of_tensor_.begin(), of_tensor_.end(), [](const auto& slices) { return !slices.empty(); }));
}

void Model::apply(const Selection& selection, std::span<const float> gradient) {
  std::vector<std::span<const float>> parts;
  for (const Held* const held : selection.held_) {
    parts.push_back(gradient.first(held->slice.count));
    gradient = gradient.subspan(held->slice.count);
  }
  share(parts.size(), threads_for(selection.elements_), [&](std::size_t i) {
    Held& held = *selection.held_[i];
    const std::lock_guard lock(held.mutex);
    held.optimizer.step(held.values, parts[i]);
  });
  ++pushes_;
}

std::string Model::Selection::name_of(std::uint64_t index) const {
  for (const Held* const held : held_) {
    if (index < held->slice.count) {
      return "element " + std::to_string(held->slice.first + index) + " of '" +
             model_->declaration_.tensors[held->slice.tensor].name + "'";
    }
    index -= held->slice.count;
  }
  return "an element past the last";
}

void share(std::size_t parts, std::size_t threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  const auto take = [&] {
    for (std::size_t part = next++; part < parts; part = next++) work(part);
  };
  std::vector<std::jthread> others;
  const auto start_another = [&] {
    try {
      others.emplace_back(take);
      return true;
    } catch (const std::system_error&) {
      return false;
    }
  };
  // If the system refuses another thread, the existing threads do all of the work.
  while (others.size() + 1 < std::min(parts, threads) && start_another()) {
  }
  take();
}

}  // namespace muster::parameter_server
