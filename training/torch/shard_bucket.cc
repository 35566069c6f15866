#include "shard_bucket.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>

namespace muster::training {
namespace {

using collective::DataType;
using collective::Error;
using collective::Result;
using collective::Session;
using collective::Status;
using collective::Ticket;

constexpr std::int64_t kPieceAlignment = 64;  // elements

std::int64_t aligned_up(std::int64_t length) {
  return (length + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
}

torch::ScalarType wire_type_of(torch::ScalarType type, Compression compression) {
  const bool is_wide = type == torch::kFloat32 || type == torch::kFloat64;
  if (!is_wide || compression == Compression::kNone) return type;
  return compression == Compression::kFloat16 ? torch::kFloat16 : torch::kBFloat16;
}

}  // namespace

ShardLayout layout_of(const std::vector<std::int64_t>& lengths, int ranks) {
  ShardLayout layout;
  std::int64_t end = 0;
  for (const std::int64_t length : lengths) {
    layout.offsets.push_back(end);
    end += aligned_up(length);
  }
  const std::int64_t share = aligned_up((end + ranks - 1) / ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    layout.counts.push_back(
        static_cast<std::uint64_t>(std::clamp(end - rank * share, std::int64_t{0}, share)));
  }
  return layout;
}

torch::Tensor view_in(const torch::Tensor& flat, std::int64_t begin,
                      const torch::Tensor& parameter) {
  if (parameter.is_non_overlapping_and_dense()) {
    return flat.as_strided(parameter.sizes(), parameter.strides(), begin);
  }
  return flat.narrow(0, begin, parameter.numel()).view(parameter.sizes());
}

ShardBucket::ShardBucket(const Session& session, std::string name, std::vector<Member> members,
                         Compression compression, bool keeps)
    : name_(std::move(name)), members_(std::move(members)), keeps_(keeps) {
  const torch::NoGradGuard no_grad;
  std::vector<std::int64_t> lengths;
  for (const Member& member : members_) lengths.push_back(member.parameter.tensor.numel());
  layout_ = layout_of(lengths, session.size());
  const auto rank = static_cast<std::size_t>(session.rank());
  const auto own = static_cast<std::int64_t>(layout_.counts[rank]);
  for (std::size_t i = 0; i < layout_.counts.size(); ++i) {
    if (i < rank) begin_ += static_cast<std::int64_t>(layout_.counts[i]);
    total_ += static_cast<std::int64_t>(layout_.counts[i]);
  }
  const torch::ScalarType type = members_.front().parameter.tensor.scalar_type();
  // A world of one rank sends nothing.
  const torch::ScalarType wire = session.size() == 1 ? type : wire_type_of(type, compression);
  flat_ = torch::zeros({total_}, type);
  if (keeps_) kept_ = torch::zeros({total_}, type);
  reduced_ = torch::zeros({own}, type);
  received_ = wire == type ? reduced_ : torch::zeros({own}, wire);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    torch::Tensor& parameter = members_[i].parameter.tensor;
    const torch::Tensor place = view_in(flat_, layout_.offsets[i], parameter);
    place.copy_(parameter.detach());
    parameter.set_data(place);
    ShardPiece piece{.parameter = members_[i].parameter, .number = members_[i].number};
    piece.begin = std::max(begin_ - layout_.offsets[i], std::int64_t{0});
    const std::int64_t end = std::min(begin_ + own - layout_.offsets[i], parameter.numel());
    piece.length = std::max(end - piece.begin, std::int64_t{0});
    if (piece.length > 0) {
      piece.values = flat_.narrow(0, layout_.offsets[i] + piece.begin, piece.length);
      piece.gradient = reduced_.narrow(0, layout_.offsets[i] + piece.begin - begin_, piece.length);
    }
    pieces_.push_back(std::move(piece));
  }
}

ShardBucket::~ShardBucket() {
  if (!scattering_ && !gathering_) return;
  // The session writes here until it ends.
  static_cast<void>(new std::vector<torch::Tensor>{flat_, wire_, received_});  // NOLINT
}

Status ShardBucket::launch(Session& session, const collective::Reduction& reduction,
                           std::vector<std::uint8_t>& has_gradient) {
  const torch::NoGradGuard no_grad;
  wire_ = keeps_ ? kept_ : torch::zeros({total_}, received_.options());
  for (std::size_t i = 0; i < members_.size(); ++i) {
    torch::Tensor& parameter = members_[i].parameter.tensor;
    torch::Tensor& gradient = parameter.mutable_grad();
    torch::Tensor place = view_in(wire_, layout_.offsets[i], parameter);
    has_gradient[members_[i].number] = gradient.defined() ? 1 : 0;
    if (!gradient.defined()) {
      place.zero_();
    } else if (gradient.data_ptr() != place.data_ptr()) {
      place.copy_(gradient.is_sparse() ? gradient.to_dense() : gradient);
    }
    if (!keeps_) {
      gradient.reset();
    } else if (gradient.defined()) {
      gradient = place;
    }
  }
  if (wire_.scalar_type() != received_.scalar_type()) wire_ = wire_.to(received_.scalar_type());
  const Result<Ticket> ticket =
      session.reduce_scatter(name_ + ".scatter", wire_.data_ptr(), received_.data_ptr(),
                             layout_.counts, *data_type_of(received_.scalar_type()), reduction);
  if (!ticket) return ticket.error();
  scattering_ = *ticket;
  return {};
}

Status ShardBucket::finish(Session& session, const std::vector<std::uint8_t>& some_rank_has) {
  if (Status reduced = session.wait(*std::exchange(scattering_, std::nullopt)); !reduced) {
    return reduced;
  }
  const torch::NoGradGuard no_grad;
  wire_.reset();
  if (received_.scalar_type() != reduced_.scalar_type()) reduced_.copy_(received_);
  for (ShardPiece& piece : pieces_) {
    if (piece.length == 0) continue;
    if (some_rank_has[piece.number] != 0) {
      piece.values.mutable_grad() = piece.gradient;
    } else {
      piece.values.mutable_grad().reset();
    }
  }
  return {};
}

Status ShardBucket::begin_gather(Session& session) {
  const std::size_t element = flat_.element_size();
  auto* const all = static_cast<std::byte*>(flat_.data_ptr());
  const auto rank = static_cast<std::size_t>(session.rank());
  const Result<Ticket> ticket =
      session.all_gather(name_ + ".gather", all + static_cast<std::size_t>(begin_) * element,
                         layout_.counts[rank] * element,
                         [all](std::span<const std::uint64_t> /*bytes*/) { return all; });
  if (!ticket) return ticket.error();
  gathering_ = *ticket;
  return {};
}

Status ShardBucket::end_gather(Session& session) {
  return session.wait(*std::exchange(gathering_, std::nullopt));
}

namespace {

using torch::optim::Adam;
using torch::optim::AdamParamState;
using torch::optim::AdamW;
using torch::optim::AdamWParamState;
using torch::optim::Optimizer;
using torch::optim::OptimizerParamState;
using torch::optim::RMSprop;
using torch::optim::RMSpropParamState;
using torch::optim::SGD;
using torch::optim::SGDParamState;

std::string state_key(const torch::Tensor& tensor) {
  return c10::guts::to_string(tensor.unsafeGetTensorImpl());
}

// Calls each(name, tensor) for each tensor of a state, and step(number).
template <typename State, typename Each, typename Step>
void visit_values(State& state, const Each& each, const Step& step) {
  if constexpr (std::is_same_v<std::remove_const_t<State>, SGDParamState>) {
    each("momentum_buffer", state.momentum_buffer());
  } else if constexpr (std::is_same_v<std::remove_const_t<State>, RMSpropParamState>) {
    step(state.step());
    each("square_avg", state.square_avg());
    each("momentum_buffer", state.momentum_buffer());
    each("grad_avg", state.grad_avg());
  } else {
    step(state.step());
    each("exp_avg", state.exp_avg());
    each("exp_avg_sq", state.exp_avg_sq());
    each("max_exp_avg_sq", state.max_exp_avg_sq());
  }
}

template <typename State>
bool read_state(const OptimizerParamState& from, TensorState& state) {
  const auto* const found = dynamic_cast<const State*>(&from);
  if (found == nullptr) return false;
  state.exists = true;
  visit_values(
      *found,
      [&](const char* name, const torch::Tensor& value) {
        if (value.defined()) state.values.emplace_back(name, value);
      },
      [&](std::int64_t step) { state.step = step; });
  return true;
}

template <typename Kind, typename State>
bool write_state(Optimizer& optimizer, const std::string& key, const TensorState& state) {
  if (dynamic_cast<Kind*>(&optimizer) == nullptr) return false;
  auto made = std::make_unique<State>();
  visit_values(
      *made,
      [&](const std::string& name, torch::Tensor& value) {
        for (const auto& [given, values] : state.values) {
          if (given == name) value = values;
        }
      },
      [&](std::int64_t& step) { step = state.step; });
  optimizer.state()[key] = std::move(made);
  return true;
}

}  // namespace

bool is_divisible(const Optimizer& optimizer) {
  return dynamic_cast<const SGD*>(&optimizer) != nullptr ||
         dynamic_cast<const Adam*>(&optimizer) != nullptr ||
         dynamic_cast<const AdamW*>(&optimizer) != nullptr ||
         dynamic_cast<const RMSprop*>(&optimizer) != nullptr;
}

TensorState state_of(const Optimizer& optimizer, const torch::Tensor& tensor) {
  TensorState state;
  const auto found = optimizer.state().find(state_key(tensor));
  if (found == optimizer.state().end()) return state;
  const OptimizerParamState& from = *found->second;
  if (!read_state<SGDParamState>(from, state) && !read_state<AdamParamState>(from, state) &&
      !read_state<AdamWParamState>(from, state)) {
    read_state<RMSpropParamState>(from, state);
  }
  return state;
}

void set_state(Optimizer& optimizer, const torch::Tensor& tensor, const TensorState& state) {
  const std::string key = state_key(tensor);
  optimizer.state().erase(key);
  if (!state.exists) return;
  if (!write_state<SGD, SGDParamState>(optimizer, key, state) &&
      !write_state<Adam, AdamParamState>(optimizer, key, state) &&
      !write_state<AdamW, AdamWParamState>(optimizer, key, state)) {
    write_state<RMSprop, RMSpropParamState>(optimizer, key, state);
  }
}

}  // namespace muster::training
