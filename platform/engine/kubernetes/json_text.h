// Members of objects of the API server, which may be missing or of another type.
//
// Pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace muster::engine::kubernetes {

using MemberPath = std::initializer_list<const char*>;

/// The member of a member; a null object if it is missing.
const nlohmann::json& member_at(const nlohmann::json& object, MemberPath path);
/// The text of that member; empty if it is missing.
std::string member_text(const nlohmann::json& object, MemberPath path);
bool member_flag(const nlohmann::json& object, MemberPath path);
int64_t member_integer(const nlohmann::json& object, MemberPath path);

/// text_of(pod, "status", "phase")
template <class... Names>
const nlohmann::json& member_of(const nlohmann::json& object, const Names*... names) {
  return member_at(object, {names...});
}
template <class... Names>
std::string text_of(const nlohmann::json& object, const Names*... names) {
  return member_text(object, {names...});
}
template <class... Names>
bool flag_of(const nlohmann::json& object, const Names*... names) {
  return member_flag(object, {names...});
}
template <class... Names>
int64_t integer_of(const nlohmann::json& object, const Names*... names) {
  return member_integer(object, {names...});
}

}  // namespace muster::engine::kubernetes
