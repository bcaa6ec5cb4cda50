#pragma once
// A JSON value: what is built to be printed, and what a file was read into.
//
// Contract: an object's fields are in the order of their names, whatever the order in which they
// were given. nlohmann::json prints and parses, in json.cpp alone: its header takes a compiler
// longer than most of our files. Throws JsonError where a text is no JSON, or a value is not of the
// kind that is asked for or not there.

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace strata {

struct JsonError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Json {
 public:
  struct Field;
  using Array = std::vector<Json>;
  using Object = std::map<std::string, Json, std::less<>>;

  Json();  ///< null; as an object or an array once something is put into it
  // NOLINTBEGIN(google-explicit-constructor)
  Json(std::nullptr_t) : Json() {}
  template <std::same_as<bool> T>  // what converts to bool is not meant
  Json(T value) : Json(Truth{value}) {}
  template <std::signed_integral T>
  Json(T value) : Json(Whole{value}) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Json(T value) : Json(Natural{value}) {}
  Json(double value);  ///< printed as null if it is not finite
  Json(const char* text);
  Json(std::string_view text);
  Json(std::string text);
  Json(Array values);
  template <class T>
  Json(const std::vector<T>& values) : Json(array()) {
    reserve(values.size());
    for (const T& value : values) push_back(Json(value));
  }
  template <class T, std::size_t kCount>
  Json(const std::array<T, kCount>& values) : Json(array()) {
    for (const T& value : values) push_back(Json(value));
  }
  // NOLINTEND(google-explicit-constructor)
  /// An object: {{"n", 3}, {"name", "x"}}.
  Json(std::initializer_list<Field> fields);
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  [[nodiscard]] static Json array();
  [[nodiscard]] static Json array(std::initializer_list<Json> values);
  [[nodiscard]] static Json object();
  [[nodiscard]] static Json parse(std::string_view text);

  // ---- building

  /// The field of an object, which is made where there is none.
  Json& operator[](std::string_view key);
  [[nodiscard]] Json& operator[](std::size_t place) { return at(place); }
  void push_back(Json value);
  /// Nothing happens where there is no such field.
  void erase(std::string_view key);
  void erase(std::size_t place);
  /// Takes all fields of an object, in place of those of the same names.
  void update(const Json& object);

  // ---- reading

  [[nodiscard]] bool is_null() const;
  [[nodiscard]] bool is_boolean() const;
  [[nodiscard]] bool is_number() const;
  [[nodiscard]] bool is_string() const;
  [[nodiscard]] bool is_array() const;
  [[nodiscard]] bool is_object() const;
  [[nodiscard]] bool contains(std::string_view key) const;
  [[nodiscard]] const Json& at(std::string_view key) const;
  [[nodiscard]] const Json& at(std::size_t place) const;
  [[nodiscard]] Json& at(std::string_view key);
  [[nodiscard]] Json& at(std::size_t place);
  [[nodiscard]] const Json& operator[](std::string_view key) const { return at(key); }
  [[nodiscard]] const Json& operator[](std::size_t place) const { return at(place); }
  /// Values of an array or object; 0 of null, 1 of anything else.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const { return size() == 0; }
  /// The values of an array; none of null.
  [[nodiscard]] const Json* begin() const;
  [[nodiscard]] const Json* end() const;
  [[nodiscard]] const Object& items() const;

  /// A number, bool, std::string, or a std::vector of these.
  template <class T>
  [[nodiscard]] T get() const {
    if constexpr (std::same_as<T, std::string>) {
      return text();
    } else if constexpr (std::same_as<T, bool>) {
      return truth();
    } else if constexpr (std::floating_point<T> || std::integral<T>) {
      return number<T>();
    } else {
      T values;
      for (const Json& value : elements()) values.push_back(value.get<typename T::value_type>());
      return values;
    }
  }

  // ---- printing

  /// One line, or with `indent` blanks for each level. Throws JsonError if a text is not UTF-8.
  [[nodiscard]] std::string dump(int indent = -1) const;
  /// One line of ASCII; what is not UTF-8 in a text is replaced.
  [[nodiscard]] std::string dump_ascii() const;

  /// Numbers are equal as numbers.
  friend bool operator==(const Json& a, const Json& b);
  /// Numbers alone are ordered.
  friend std::partial_ordering operator<=>(const Json& a, const Json& b);
  friend std::ostream& operator<<(std::ostream& out, const Json& value);

 private:
  struct Truth {
    bool value;
  };
  struct Whole {
    std::int64_t value;
  };
  struct Natural {
    std::uint64_t value;
  };
  using Value =
      std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double,
                   std::unique_ptr<std::string>, std::unique_ptr<Array>, std::unique_ptr<Object>>;

  friend struct JsonText;  // to and from nlohmann::json

  explicit Json(Truth truth);
  explicit Json(Whole number);
  explicit Json(Natural number);
  void reserve(std::size_t count);
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] bool truth() const;
  [[nodiscard]] const Array& elements() const;
  template <class T>
  [[nodiscard]] T number() const;  // defined for the types that are asked for

  Value value_;
};

struct Json::Field {
  std::string_view key;
  Json value;
};

}  // namespace strata
