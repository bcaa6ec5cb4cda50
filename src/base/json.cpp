#include "base/json.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

namespace strata {
namespace {

/// No file of ours is nested so deeply, and what is much deeper ends a recursion by force.
constexpr int kDepthMax = 200;

[[noreturn]] void complain_of(const char* wanted) {
  throw JsonError(fmt::format("JSON holds something else than {}", wanted));
}

template <class T>
const T* held(const auto& value) {
  const auto* owner = std::get_if<std::unique_ptr<T>>(&value);
  return owner == nullptr ? nullptr : owner->get();
}

bool is_integer(const auto& value) {
  return std::holds_alternative<std::int64_t>(value) ||
         std::holds_alternative<std::uint64_t>(value);
}

}  // namespace

struct JsonText {
  using Parsed = nlohmann::json;

  static Json from(const Parsed& parsed, int depth = 1) {
    if (depth > kDepthMax)
      throw JsonError(fmt::format("JSON is nested more than {} deep", kDepthMax));
    switch (parsed.type()) {
      case Parsed::value_t::boolean: return parsed.get<bool>();
      case Parsed::value_t::number_integer: return parsed.get<std::int64_t>();
      case Parsed::value_t::number_unsigned: return parsed.get<std::uint64_t>();
      case Parsed::value_t::number_float: return parsed.get<double>();
      case Parsed::value_t::string: return parsed.get_ref<const std::string&>();
      case Parsed::value_t::array: {
        Json values = Json::array();
        values.reserve(parsed.size());
        for (const Parsed& value : parsed) values.push_back(from(value, depth + 1));
        return values;
      }
      case Parsed::value_t::object: {
        Json object = Json::object();
        for (const auto& [key, value] : parsed.items()) object[key] = from(value, depth + 1);
        return object;
      }
      default: return nullptr;
    }
  }

  static Parsed of(const Json& json) {
    if (const auto* text = held<std::string>(json.value_)) return *text;
    if (const auto* values = held<Json::Array>(json.value_)) {
      Parsed array = Parsed::array();
      for (const Json& value : *values) array.push_back(of(value));
      return array;
    }
    if (const auto* fields = held<Json::Object>(json.value_)) {
      Parsed object = Parsed::object();
      for (const auto& [key, value] : *fields) object[key] = of(value);
      return object;
    }
    if (const auto* truth = std::get_if<bool>(&json.value_)) return *truth;
    if (const auto* number = std::get_if<std::int64_t>(&json.value_)) return *number;
    if (const auto* number = std::get_if<std::uint64_t>(&json.value_)) return *number;
    if (const auto* number = std::get_if<double>(&json.value_)) return *number;
    return nullptr;
  }

  static std::string dump(const Json& json, int indent, bool ascii) {
    using Handler = Parsed::error_handler_t;
    try {
      return of(json).dump(indent, ' ', ascii, ascii ? Handler::replace : Handler::strict);
    } catch (const Parsed::exception& error) {
      throw JsonError(error.what());
    }
  }
};

Json::Json() = default;
Json::Json(Truth truth) : value_(truth.value) {}
Json::Json(Whole number) : value_(number.value) {}
Json::Json(Natural number) : value_(number.value) {}
Json::Json(double value) : value_(value) {}
Json::Json(const char* text) : Json(std::string(text)) {}
Json::Json(std::string_view text) : Json(std::string(text)) {}
Json::Json(std::string text) : value_(std::make_unique<std::string>(std::move(text))) {}
Json::Json(Array values) : value_(std::make_unique<Array>(std::move(values))) {}
Json::Json(std::initializer_list<Field> fields) : Json(object()) {
  auto& object = *std::get<std::unique_ptr<Object>>(value_);
  for (const Field& field : fields) object.emplace(field.key, field.value);
}
Json::Json(const Json& other) {
  if (const auto* text = held<std::string>(other.value_)) {
    value_ = std::make_unique<std::string>(*text);
  } else if (const auto* values = held<Array>(other.value_)) {
    value_ = std::make_unique<Array>(*values);
  } else if (const auto* fields = held<Object>(other.value_)) {
    value_ = std::make_unique<Object>(*fields);
  } else if (const auto* truth = std::get_if<bool>(&other.value_)) {
    value_ = *truth;
  } else if (const auto* whole = std::get_if<std::int64_t>(&other.value_)) {
    value_ = *whole;
  } else if (const auto* natural = std::get_if<std::uint64_t>(&other.value_)) {
    value_ = *natural;
  } else if (const auto* real = std::get_if<double>(&other.value_)) {
    value_ = *real;
  }
}
Json::Json(Json&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
Json& Json::operator=(const Json& other) {
  if (this != &other) *this = Json(other);
  return *this;
}
Json& Json::operator=(Json&& other) noexcept {
  Value taken = std::exchange(other.value_, nullptr);  // which may be a part of this one
  value_ = std::move(taken);
  return *this;
}
Json::~Json() = default;

Json Json::array() { return Array(); }

Json Json::array(std::initializer_list<Json> values) { return Array(values); }

Json Json::object() {
  Json json;
  json.value_ = std::make_unique<Object>();
  return json;
}

Json Json::parse(std::string_view text) {
  try {
    return JsonText::from(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    throw JsonError(error.what());
  }
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) *this = object();
  const auto* owner = std::get_if<std::unique_ptr<Object>>(&value_);
  if (owner == nullptr) complain_of("an object");
  const auto place = (*owner)->find(key);
  return place != (*owner)->end() ? place->second : (*owner)->emplace(key, Json()).first->second;
}

void Json::reserve(std::size_t count) { std::get<std::unique_ptr<Array>>(value_)->reserve(count); }

void Json::push_back(Json value) {
  if (is_null()) *this = array();
  const auto* owner = std::get_if<std::unique_ptr<Array>>(&value_);
  if (owner == nullptr) complain_of("an array");
  (*owner)->push_back(std::move(value));
}

void Json::erase(std::string_view key) {
  const auto* owner = std::get_if<std::unique_ptr<Object>>(&value_);
  if (owner == nullptr) complain_of("an object");
  const auto place = (*owner)->find(key);
  if (place != (*owner)->end()) (*owner)->erase(place);
}

void Json::erase(std::size_t place) {
  static_cast<void>(at(place));
  auto& values = *std::get<std::unique_ptr<Array>>(value_);
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(place));
}

void Json::update(const Json& object) {
  for (const auto& [key, value] : object.items()) (*this)[key] = value;
}

bool Json::is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
bool Json::is_boolean() const { return std::holds_alternative<bool>(value_); }
bool Json::is_number() const {
  return is_integer(value_) || std::holds_alternative<double>(value_);
}
bool Json::is_string() const { return held<std::string>(value_) != nullptr; }
bool Json::is_array() const { return held<Array>(value_) != nullptr; }
bool Json::is_object() const { return held<Object>(value_) != nullptr; }

bool Json::contains(std::string_view key) const {
  return is_object() && items().find(key) != items().end();
}

const Json& Json::at(std::string_view key) const {
  const auto place = items().find(key);
  if (place == items().end()) throw JsonError(fmt::format("JSON has no '{}'", key));
  return place->second;
}

Json& Json::at(std::string_view key) {
  static_cast<void>(std::as_const(*this).at(key));  // throws where there is none
  return (*this)[key];
}

const Json& Json::at(std::size_t place) const {
  if (place >= elements().size()) throw JsonError(fmt::format("JSON has no element {}", place));
  return elements()[place];
}

Json& Json::at(std::size_t place) {
  static_cast<void>(std::as_const(*this).at(place));
  return (*std::get<std::unique_ptr<Array>>(value_))[place];
}

std::size_t Json::size() const {
  if (is_array()) return elements().size();
  if (is_object()) return items().size();
  return is_null() ? 0 : 1;
}

const Json* Json::begin() const { return is_null() ? nullptr : elements().data(); }

const Json* Json::end() const { return is_null() ? nullptr : begin() + elements().size(); }

const Json::Object& Json::items() const {
  const auto* fields = held<Object>(value_);
  if (fields == nullptr) complain_of("an object");
  return *fields;
}

const Json::Array& Json::elements() const {
  const auto* values = held<Array>(value_);
  if (values == nullptr) complain_of("an array");
  return *values;
}

const std::string& Json::text() const {
  const auto* text = held<std::string>(value_);
  if (text == nullptr) complain_of("a text");
  return *text;
}

bool Json::truth() const {
  const bool* truth = std::get_if<bool>(&value_);
  if (truth == nullptr) complain_of("true or false");
  return *truth;
}

template <class T>
T Json::number() const {
  if (const auto* number = std::get_if<double>(&value_)) return static_cast<T>(*number);
  if (const auto* number = std::get_if<std::int64_t>(&value_)) return static_cast<T>(*number);
  if (const auto* number = std::get_if<std::uint64_t>(&value_)) return static_cast<T>(*number);
  complain_of("a number");
}
template int Json::number() const;
template std::int64_t Json::number() const;
template std::uint64_t Json::number() const;
template double Json::number() const;

std::string Json::dump(int indent) const { return JsonText::dump(*this, indent, false); }

std::string Json::dump_ascii() const { return JsonText::dump(*this, -1, true); }

bool operator==(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return JsonText::of(a) == JsonText::of(b);
  if (a.value_.index() != b.value_.index()) return false;
  if (a.is_string()) return a.text() == b.text();
  if (a.is_array()) return a.elements() == b.elements();
  if (a.is_object()) return a.items() == b.items();
  return a.is_null() || a.truth() == b.truth();
}

std::partial_ordering operator<=>(const Json& a, const Json& b) {
  if (!a.is_number() || !b.is_number()) return std::partial_ordering::unordered;
  if (a == b) return std::partial_ordering::equivalent;
  const nlohmann::json left = JsonText::of(a);
  const nlohmann::json right = JsonText::of(b);
  if (left < right) return std::partial_ordering::less;
  return left > right ? std::partial_ordering::greater : std::partial_ordering::unordered;
}

std::ostream& operator<<(std::ostream& out, const Json& value) { return out << value.dump(); }

}  // namespace strata
