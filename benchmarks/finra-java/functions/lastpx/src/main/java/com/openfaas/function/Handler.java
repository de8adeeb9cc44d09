package com.openfaas.function;

import com.openfaas.model.AbstractHandler;
import com.openfaas.model.IRequest;
import com.openfaas.model.IResponse;
import java.math.BigDecimal;
import java.util.Map;

/** Checks the price (FIX tag 31, LastPx) of every trade. */
public class Handler extends AbstractHandler {
    @Override
    public IResponse Handle(IRequest request) {
        Map<String, Object> portfolio = Json.read(request.getBody());
        Map<String, Object> securities = Finra.map(portfolio, "securities");
        return Finra.check("lastpx", portfolio, trade -> fault(trade, securities));
    }

    /** The first rule that the trade's price breaks, or null. */
    private static String fault(Map<String, Object> trade, Map<String, Object> securities) {
        String text = String.valueOf(trade.get("LastPx"));
        BigDecimal price;
        try {
            price = new BigDecimal(text);
        } catch (NumberFormatException error) {
            return text.matches("(?i)[-+]?(nan|inf|infinity)") ? "not-positive" : "not-a-number";
        }
        if (price.signum() <= 0) {
            return "not-positive";
        }
        if (!Prices.onTick(price)) {
            return "sub-penny";
        }
        Map<String, Object> security = Finra.map(securities, (String) trade.get("Symbol"));
        BigDecimal close = new BigDecimal((String) security.get("previous_close"));
        return Prices.withinBand(price, close) ? null : "outside-band";
    }
}
