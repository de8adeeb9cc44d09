package com.openfaas.function;

import com.openfaas.model.AbstractHandler;
import com.openfaas.model.IRequest;
import com.openfaas.model.IResponse;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Fetches quotes for the portfolio's symbols, and answers how many shares each trade moves. */
public class Handler extends AbstractHandler {
    /** FIX tag 54: buying adds shares, selling (also short) takes them away, a cross does neither. */
    private static final Map<Object, Long> DIRECTION = Map.of("1", 1L, "2", -1L, "5", -1L, "6", -1L);

    /** Answers the portfolio with the account's cash, quotes and moves of every trade. */
    @Override
    public IResponse Handle(IRequest request) {
        Map<String, Object> portfolio = Json.read(request.getBody());
        List<Map<String, Object>> trades = Finra.trades(portfolio);
        List<Object> symbols = trades.stream().map(trade -> trade.get("Symbol")).distinct().sorted().toList();
        Map<String, Object> moves = new LinkedHashMap<>();
        for (Map<String, Object> trade : trades) {
            moves.put((String) trade.get("ExecID"), List.of(trade.get("Symbol"), sharesMoved(trade)));
        }
        try {
            return Finra.answer(
                "check", "marketdata",
                "faults", Map.of(),
                "cash_cents", Finra.map(portfolio, "account").get("cash_cents"),
                "quotes_cents", Quotes.fetch(symbols),
                "moves", moves
            );
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /**
     * The signed number of shares, 0 if side or quantity cannot be read.
     *
     * The other functions reject such a trade, so that its shares count nowhere.
     */
    private static long sharesMoved(Map<String, Object> trade) {
        long direction = DIRECTION.getOrDefault(trade.get("Side"), 0L);
        return trade.get("LastQty") instanceof Long quantity ? direction * quantity : 0;
    }
}
